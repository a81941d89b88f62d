/* A recipe's steps, written as the steps of a Dockerfile: one stage, no context but uploads. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/fd.h"
#include "core/build_private.h"
#include "core/upload.h"

#define STEPS_MAX 1000
#define BLOCK (256 * 1024)
#define PATH_USUAL "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define TASK_MAX 300 /* leaves room for the reason in a sentence */
#define OWN_STEPS 3  /* what one of a recipe's becomes at most, and what comes before them */

/* The login shell if there is one: what installers add to its profile counts for later steps. */
static const char shell[] = "if [ -x /bin/bash ]; then exec /bin/bash -l -c \"$1\"; fi\n"
                            "exec /bin/sh -l -c \"$1\"";
/* Images without the usual tools get the two lines by hand. */
#define ADD_USER                                                                              \
    "add_by_hand() {\n"                                                                       \
    "  n=1000; while grep -q \":x:$n:\" /etc/passwd /etc/group; do n=$((n + 1)); done\n"      \
    "  echo \"$1:x:$n:\" >>/etc/group; echo \"$1:x:$n:$n::/home/$1:/bin/sh\" >>/etc/passwd\n" \
    "}\n"                                                                                     \
    "id -u \"$1\" >/dev/null 2>&1 || useradd -m -s /bin/bash \"$1\" 2>/dev/null ||\n"         \
    "  adduser -D \"$1\" 2>/dev/null || add_by_hand \"$1\"\n"
static const char add_user[] = ADD_USER;
/* The user that these clients expect, who may do everything; and a login that leaves PATH alone,
 * or a step's ENV would be lost to the next. */
static const char provision[] =
    "set -e\n" ADD_USER "mkdir -p \"/home/$1\"; chown \"$1:\" \"/home/$1\"\n"
    "f=/etc/sudoers.d/$1\n"
    "if [ -d /etc/sudoers.d ] && [ ! -e \"$f\" ]; then\n"
    "  echo \"$1 ALL=(ALL:ALL) NOPASSWD: ALL\" >\"$f\"; chmod 0440 \"$f\"\n"
    "fi\n"
    "if [ -f /etc/profile ] && ! grep -q path_as_given /etc/profile; then\n"
    "  { echo 'path_as_given=$PATH'; cat /etc/profile\n"
    "    echo '[ -z \"$path_as_given\" ] || PATH=$path_as_given'; echo 'unset path_as_given'\n"
    "  } >/etc/profile.new\n"
    "  cat /etc/profile.new >/etc/profile; rm /etc/profile.new\n"
    "fi";

struct writer {
    struct build *b;
    struct dockerfile_stage *stage;
    const char *user; /* after the steps so far */
    unsigned line;
    struct err *err;
};

static int no_memory(struct err *err)
{
    return err_set(err, ENOMEM, "cannot allocate a build's steps");
}

static int bad(const struct writer *w, const char *what)
{
    return err_fail(w->err, FAIL_INVALID_FIELD, "step %u: %s", w->line, what);
}

static struct dockerfile_step *add(struct writer *w, enum dockerfile_kind kind, const char *text,
                                   size_t n_words)
{
    struct arena *a = &w->b->file.arena;
    struct dockerfile_step *s = &w->stage->steps[w->stage->n_steps];
    *s = (struct dockerfile_step){ .kind = kind, .line = w->line };
    s->text = arena_strdup(a, text);
    s->words = arena_alloc(a, (n_words + 1) * sizeof(*s->words));
    if (!s->text || !s->words)
        return NULL;
    s->n_words = n_words;
    w->stage->n_steps++;
    return s;
}

/* /bin/sh -c SCRIPT sh ARG */
static int add_script(struct writer *w, const char *text, const char *script, const char *arg,
                      const char *user)
{
    struct arena *a = &w->b->file.arena;
    struct dockerfile_step *s = add(w, DOCKERFILE_RUN, text, 5);
    if (!s)
        return no_memory(w->err);
    const char *const words[] = { "/bin/sh", "-c", script, "sh", arg };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!(s->words[i] = arena_strdup(a, words[i])))
            return no_memory(w->err);
    s->json = true;
    s->user = user ? arena_strdup(a, user) : NULL;
    return user && !s->user ? no_memory(w->err) : 0;
}

/* What the last step added does, as its failure is told. */
_printf_(2, 3) static int set_task(struct writer *w, const char *fmt, ...)
{
    char text[TASK_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    struct dockerfile_step *s = &w->stage->steps[w->stage->n_steps - 1];
    s->task = arena_strdup(&w->b->file.arena, text);
    return s->task ? 0 : no_memory(w->err);
}

static const char *arg(const struct build_step *step, size_t i)
{
    return i < step->n_args && *step->args[i] ? step->args[i] : NULL;
}

/* ---- each of them ---- */

static int add_run(struct writer *w, const struct build_step *step, const char *text)
{
    if (!arg(step, 0))
        return bad(w, "RUN needs a command");
    int r = add_script(w, text, shell, arg(step, 0), arg(step, 1));
    return r < 0 ? r : set_task(w, "run command '%.250s'", arg(step, 0));
}

static int add_copy(struct writer *w, const struct build_step *step, const char *text)
{
    struct arena *a = &w->b->file.arena;
    char dir[sizeof(BUILD_CONTEXT_DIR) + UPLOAD_HASH_MAX + 1];
    const char *owner = arg(step, 2) ? arg(step, 2) : w->user;
    if (!arg(step, 0) || !arg(step, 1))
        return bad(w, "COPY needs a source and a destination");
    if (!step->files || !upload_hash_valid(step->files))
        return bad(w, "COPY needs 'filesHash', the hash of its files in hex");
    (void)snprintf(dir, sizeof(dir), BUILD_CONTEXT_DIR "/%s", step->files);
    struct dockerfile_step *s = add(w, DOCKERFILE_COPY, text, 2);
    if (!s)
        return no_memory(w->err);
    s->words[0] = arena_strdup(a, step->args[0]);
    s->words[1] = arena_strdup(a, step->args[1]);
    s->chown = arena_strdup(a, owner);
    s->chmod = arg(step, 3) ? arena_strdup(a, step->args[3]) : NULL;
    s->files = arena_strdup(a, dir);
    bool whole = s->words[0] && s->words[1] && s->chown && s->files;
    if (!whole || (!s->chmod && arg(step, 3)))
        return no_memory(w->err);
    return set_task(w, "copy \"%.120s\" to \"%.120s\" in sandbox", s->words[0], s->words[1]);
}

static int add_env(struct writer *w, const struct build_step *step, const char *text)
{
    struct arena *a = &w->b->file.arena;
    if (step->n_args == 0 || step->n_args % 2)
        return bad(w, "ENV needs names and values in turn");
    struct dockerfile_step *s = add(w, DOCKERFILE_ENV, text, 0);
    if (!s || !(s->pairs = arena_alloc(a, step->n_args / 2 * sizeof(*s->pairs))))
        return no_memory(w->err);
    for (size_t i = 0; i < step->n_args; i += 2) {
        struct dockerfile_pair *p = &s->pairs[s->n_pairs++];
        p->name = arena_strdup(a, step->args[i]);
        p->value = arena_strdup(a, step->args[i + 1]);
        if (!p->name || !p->value)
            return no_memory(w->err);
        if (!*p->name || strchr(p->name, '='))
            return bad(w, "a variable's name must not be empty or have a '='");
    }
    return 0;
}

static int add_word(struct writer *w, enum dockerfile_kind kind, const char *word, const char *text,
                    struct dockerfile_step **ret_step)
{
    struct dockerfile_step *s = add(w, kind, text, 1);
    if (!s || !(s->words[0] = arena_strdup(&w->b->file.arena, word)))
        return no_memory(w->err);
    *ret_step = s;
    return 0;
}

static int add_workdir(struct writer *w, const struct build_step *step, const char *text)
{
    struct dockerfile_step *s;
    if (!arg(step, 0))
        return bad(w, "WORKDIR needs a path");
    int r = add_word(w, DOCKERFILE_WORKDIR, step->args[0], text, &s);
    if (r >= 0 && !(s->chown = arena_strdup(&w->b->file.arena, w->user)))
        r = no_memory(w->err);
    return r < 0 ? r : set_task(w, "create workdir");
}

/* One that is not there yet is made, unless it is no plain name. */
static int add_user_step(struct writer *w, const struct build_step *step, const char *text)
{
    struct dockerfile_step *s;
    const char *name = arg(step, 0);
    if (!name)
        return bad(w, "USER needs a name");
    bool plain =
        !strpbrk(name, ":$") && name[0] != '-' && strspn(name, "0123456789") != strlen(name);
    int r = plain ? add_script(w, text, add_user, name, "root") : 0;
    if (r >= 0 && plain)
        r = set_task(w, "create user");
    if (r >= 0)
        r = add_word(w, DOCKERFILE_USER, name, text, &s);
    if (r >= 0)
        w->user = s->words[0];
    return r;
}

static const struct {
    const char *type;
    int (*add)(struct writer *w, const struct build_step *step, const char *text);
} kinds[] = {
    { "RUN", add_run },         { "COPY", add_copy },      { "ENV", add_env },
    { "WORKDIR", add_workdir }, { "USER", add_user_step },
};

/* As its client would write it, for the log. */
static int describe(const struct build_step *step, struct buf *text)
{
    bool all = strcmp(step->type, "ENV") == 0;
    size_t shown = strcmp(step->type, "COPY") == 0 ? 2 : all ? step->n_args : 1;
    int r = buf_puts(text, step->type);
    for (size_t i = 0; i < step->n_args && i < shown && r >= 0; i++)
        r = buf_printf(text, "%s%s", all && i % 2 ? "=" : " ", step->args[i]);
    return r;
}

static int add_step(struct writer *w, const struct build_step *step)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(DOCKERFILE_MAX);
    size_t first = w->stage->n_steps;
    if (describe(step, &text) < 0)
        return bad(w, "it is too long");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].type, step->type) == 0) {
            int r = kinds[i].add(w, step, text.data);
            if (r >= 0)
                w->stage->steps[first].fresh = step->fresh;
            return r;
        }
    return err_fail(w->err, FAIL_INVALID_FIELD,
                    "step %u: there is no '%.40s', only RUN, COPY, ENV, WORKDIR and USER", w->line,
                    step->type);
}

/* ---- all of it ---- */

static int add_base(struct writer *w, const struct build_recipe *recipe)
{
    struct arena *a = &w->b->file.arena;
    char text[IMAGE_NAME_MAX + 8];
    struct dockerfile_step *from = arena_alloc(a, sizeof(*from));
    (void)snprintf(text, sizeof(text), "FROM %.256s", recipe->base);
    if (!from)
        return no_memory(w->err);
    *from = (struct dockerfile_step){ .kind = DOCKERFILE_FROM, .n_words = 1 };
    from->text = arena_strdup(a, text);
    from->words = arena_alloc(a, 2 * sizeof(*from->words));
    if (!from->text || !from->words || !(from->words[0] = arena_strdup(a, recipe->base)))
        return no_memory(w->err);
    w->stage->from = from;
    if (!recipe->provision)
        return 0;
    int r = add_script(w, text, provision, recipe->provision, "root");
    if (r >= 0)
        w->stage->steps[0].workdir =
            "/"; /* the stage's is the user's home, which this step makes */
    return r;
}

static int keep(char **at, const char *text)
{
    *at = text ? strdup(text) : NULL;
    return text && !*at ? -ENOMEM : 0;
}

int build_recipe_take(struct build *b, const struct build_recipe *recipe, struct err *err)
{
    struct dockerfile *file = &b->file;
    struct writer w = { .b = b, .user = recipe->user, .err = err };
    if (recipe->n > STEPS_MAX)
        return err_fail_as(err, E2BIG, FAIL_INVALID_FIELD, "a template may have %d steps",
                           STEPS_MAX);
    b->recipe = true;
    file->arena = (struct arena)ARENA_INIT(DOCKERFILE_MEMORY);
    file->escape = '\\';
    file->stages = arena_alloc(&file->arena, sizeof(*file->stages));
    if (!file->stages ||
        !(file->stages->steps = arena_alloc(&file->arena, (recipe->n + 1) * OWN_STEPS *
                                                              sizeof(*file->stages->steps))) ||
        keep(&b->base_owner, recipe->base_owner) < 0 || keep(&b->username, recipe->username) < 0 ||
        keep(&b->password, recipe->password) < 0 || keep(&b->user, recipe->user) < 0 ||
        keep(&b->workdir, recipe->workdir) < 0)
        return no_memory(err);
    w.stage = file->stages;
    int r = add_base(&w, recipe);
    for (size_t i = 0; i < recipe->n && r >= 0; i++) {
        w.line = (unsigned)i + 1;
        r = add_step(&w, &recipe->steps[i]);
    }
    if (r >= 0)
        file->n_stages = 1;
    return r;
}

/* A login has a home; the image's configuration does not tell which. */
static const char *lookup(void *ctx, const char *name)
{
    struct build *b = ctx;
    struct expand x = scope_expand(&b->stages[0].scope);
    const char *value = x.lookup(x.ctx, name);
    return value || strcmp(name, "HOME") != 0 ? value : b->home;
}

struct expand build_recipe_expand(struct build *b, struct build_stage *st)
{
    const char *user = st->config.user;
    bool root = !user || strcmp(user, "root") == 0 || strcmp(user, "0") == 0;
    (void)snprintf(b->home, sizeof(b->home), "%s%.63s", root ? "/root" : "/home/",
                   root ? "" : user);
    return (struct expand){ .escape = '\\', .keep_quotes = true, .lookup = lookup, .ctx = b };
}

int build_recipe_settle(struct build *b, struct build_stage *st, struct err *err)
{
    if (!vars_has(&st->scope.env, "PATH") && vars_set(&st->scope.env, "PATH", PATH_USUAL) < 0)
        return no_memory(err);
    free(st->config.user);
    free(st->config.workdir);
    return keep(&st->config.user, b->user) < 0 || keep(&st->config.workdir, b->workdir) < 0
               ? no_memory(err)
               : 0;
}

static int unpack(struct build *b, const struct dockerfile_step *step, struct err *err)
{
    _cleanup_free_ char *block = malloc(BLOCK);
    _cleanup_fd_ int fd =
        upload_open(b->core, b->owner, step->files + sizeof(BUILD_CONTEXT_DIR), err);
    if (fd < 0)
        return err_wrap(err, fd, "line %u", step->line);
    int r = block ? build_context_begin(b, step->files, err) : no_memory(err);
    while (r >= 0) {
        ssize_t n = read(fd, block, BLOCK);
        if (n < 0)
            r = err_set(err, errno, "cannot read an upload");
        if (n <= 0 || build_cancelled(b))
            break;
        r = archiver_write(b->unpacking, block, (size_t)n);
        if (r == -EPIPE) { /* it ended early, and tells why below */
            r = 0;
            break;
        }
    }
    if (r >= 0)
        r = build_context_close(b, err);
    return r < 0 ? err_wrap(err, r, "line %u", step->line) : 0;
}

int build_recipe_unpack(struct build *b, struct err *err)
{
    const struct dockerfile_stage *stage = &b->file.stages[0];
    int r = 0;
    for (size_t i = 0; i < stage->n_steps && r >= 0; i++) {
        const struct dockerfile_step *step = &stage->steps[i];
        bool known = !step->files;
        for (size_t k = 0; k < i && !known; k++)
            known = stage->steps[k].files && strcmp(stage->steps[k].files, step->files) == 0;
        b->line = step->line;
        if (!known)
            r = unpack(b, step, err);
    }
    if (r >= 0)
        b->line = 0;
    return r;
}

int build_recipe_fail(const struct dockerfile_step *step, int r, struct err *err)
{
    unsigned line;
    int n = 0;
    if (!step->task || !err->failure)
        return r; /* cancelled, or nobody's fault */
    if (sscanf(err->msg, "line %u: %n", &line, &n) == 1 && n > 0)
        memmove(err->msg, err->msg + n, strlen(err->msg + n) + 1);
    return err_wrap(err, r, "failed to %s", step->task);
}

void build_recipe_reword(struct err *err)
{
    if (strncmp(err->msg, "line 0: ", 8) == 0)
        memmove(err->msg, err->msg + 8, strlen(err->msg + 8) + 1);
    if (strncmp(err->msg, "line ", 5) == 0)
        memcpy(err->msg, "step", 4);
}

void build_recipe_done(struct build *b)
{
    free(b->base_owner);
    free(b->username);
    if (b->password)
        explicit_bzero(b->password, strlen(b->password));
    free(b->password);
    free(b->user);
    free(b->workdir);
}
