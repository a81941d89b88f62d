#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/pack.h"
#include "cli/sanitise.h"
#include "cli/units.h"
#include "cli/xmem.h"

#define DOCKERFILE "Dockerfile"
#define OUTSIDE ".warren.dockerfile" /* what the daemon is told where it is not in the context */
#define DOCKERFILE_MAX (1024 * 1024) /* the daemon's own limit */

struct build_opts {
    const char *name, *file, *target, *net;
    struct opt_list args, rules;
    bool no_cache, quiet;
};

#define AT(member_) offsetof(struct build_opts, member_)
static const struct opt build_table[] = {
    { 't', "tag", OPT_TEXT, AT(name), "NAME", "What to call the image.", NULL },
    { 'f', "file", OPT_TEXT, AT(file), "FILE",
      "The Dockerfile. Default: Dockerfile in PATH; `-` reads standard input.", "@file" },
    { 0, "target", OPT_TEXT, AT(target), "STAGE", "Stop at this stage, and make it the image.",
      NULL },
    { 0, "build-arg", OPT_LIST, AT(args), "NAME[=VALUE]",
      "A value for an ARG; without one, the variable's of this environment. May be given again.",
      NULL },
    { 0, "net", OPT_TEXT, AT(net), "WHAT",
      "What the steps may reach: open (the default: packages are installed), agents or none.",
      "none agents open" },
    { 0, "rule", OPT_LIST, AT(rules), "RULE",
      "Or by rules, in order: 'allow *.example.com 443'; may be given again.", NULL },
    { 0, "no-cache", OPT_FLAG, AT(no_cache), NULL, "Do every step again.", NULL },
    { 'q', "quiet", OPT_FLAG, AT(quiet), NULL, "Print only the image's id.", NULL },
};

/* ---- what is sent ---- */

struct context {
    struct pack *pack; /* NULL: standard input is a tar already */
    struct ignore ignore;
    char *dockerfile; /* as the daemon shall know it */
    const char *always[4];
    struct buf text; /* of a Dockerfile that is not in the context */
};

static void context_done(struct context *c)
{
    pack_free(c->pack);
    ignore_done(&c->ignore);
    free(c->dockerfile);
    buf_done(&c->text);
}

static int read_all(int fd, const char *what, struct buf *out, struct err *err)
{
    for (;;) {
        int r = buf_reserve(out, 65536);
        ssize_t n = r < 0 ? r : read(fd, out->data + out->len, 65536);
        if (n < 0 && errno == EINTR && r >= 0)
            continue;
        if (n < 0)
            return err_set(err, r < 0 ? -r : errno, "cannot read '%s': %s", what,
                           strerror(r < 0 ? -r : errno));
        if (n == 0)
            return 0;
        out->len += (size_t)n;
        out->data[out->len] = '\0';
    }
}

/* 1 and the text; 0: there is no such file. */
static int read_file(const char *dir, const char *name, struct buf *out, struct err *err)
{
    _cleanup_free_ char *path = dir ? xasprintf("%s/%s", dir, name) : xstrdup(name);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return err_set(err, errno, "cannot open '%s': %s", path, strerror(errno));
    int r = read_all(fd, path, out, err);
    return r < 0 ? r : 1;
}

/* FILE's own rules, or the context's. */
static int read_rules(const char *dir, struct context *c, struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(IGNORE_FILE_MAX + 65536);
    _cleanup_free_ char *own = xasprintf("%s" IGNORE_FILE, c->dockerfile);
    int r = read_file(dir, own, &text, err);
    if (r > 0)
        c->always[2] = take_ptr(own); /* lives as long as the program */
    else if (r == 0)
        r = read_file(dir, IGNORE_FILE, &text, err);
    if (r <= 0)
        return r;
    return ignore_parse(text.data, text.len, &c->ignore, err);
}

/* Where the Dockerfile is below the context, or NULL when it is not. */
static char *inside(const char *dir, const char *file)
{
    char top[PATH_MAX], at[PATH_MAX];
    _cleanup_free_ char *parent = xstrdup(file);
    char *slash = strrchr(parent, '/');
    if (slash)
        slash[slash == parent] = '\0';
    if (!realpath(dir, top) || !realpath(slash ? parent : ".", at))
        return NULL;
    size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);
    if (strncmp(top, at, n) != 0 || (at[n] && at[n] != '/'))
        return NULL;
    const char *below = at[n] == '/' ? at + n + 1 : at + n;
    return *below ? xasprintf("%s/%s", below, path_base(file)) : xstrdup(path_base(file));
}

static int find_dockerfile(const char *dir, const char *file, struct context *c, struct err *err)
{
    c->text = (struct buf)BUF_INIT(DOCKERFILE_MAX + 65536);
    if (!file) {
        c->dockerfile = xstrdup(DOCKERFILE);
        _cleanup_free_ char *path = xasprintf("%s/" DOCKERFILE, dir);
        return access(path, R_OK) == 0
                   ? 0
                   : err_set(err, errno, "cannot read '%s': %s; -f names another Dockerfile", path,
                             strerror(errno));
    }
    bool piped = strcmp(file, "-") == 0;
    c->dockerfile = piped ? NULL : inside(dir, file);
    if (c->dockerfile)
        return access(file, R_OK) == 0
                   ? 0
                   : err_set(err, errno, "cannot read '%s': %s", file, strerror(errno));
    c->dockerfile = xstrdup(OUTSIDE);
    int r = piped ? read_all(STDIN_FILENO, "standard input", &c->text, err)
                  : read_file(NULL, file, &c->text, err);
    if (r == 0 && !piped)
        return err_set(err, ENOENT, "there is no file '%s'", file);
    return r < 0 ? r : buf_puts(&c->text, "");
}

static int context_open(const char *dir, const char *file, struct context *c, struct err *err)
{
    int r = find_dockerfile(dir, file, c, err);
    if (r >= 0)
        r = read_rules(dir, c, err);
    if (r < 0)
        return r;
    c->always[0] = c->dockerfile;
    c->always[1] = IGNORE_FILE;
    r = pack_new(dir, &c->ignore, c->always, &c->pack, err);
    if (r >= 0 && c->text.data)
        pack_extra(c->pack, OUTSIDE, c->text.data, c->text.len);
    return r;
}

/* ---- what comes back ---- */

struct build {
    struct cli *cli;
    const struct build_opts *opts;
    struct context context;
    int64_t began_ms;
    struct sanitiser clean;
    bool at_line_start;
    FILE *answer; /* where the image is told of */
    bool json, made;
    struct err failure; /* what the daemon said */
};

static ssize_t send_context(void *arg, void *p, size_t n)
{
    struct build *b = arg;
    if (b->context.pack)
        return pack_read(b->context.pack, p, n);
    ssize_t r;
    do {
        r = read(STDIN_FILENO, p, n);
    } while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : r;
}

static void show_log(struct build *b, const json_t *line)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(8u << 20);
    const char *text = member_text(line, "text");
    if (isatty(STDERR_FILENO) ? sanitise(&b->clean, text, strlen(text), &out) < 0
                              : buf_puts(&out, text) < 0)
        return;
    for (const char *p = out.data; p && *p;) { /* each line set off from our own */
        size_t n = strcspn(p, "\n");
        if (b->at_line_start && n)
            (void)fputs("  | ", stderr);
        b->at_line_start = p[n] == '\n';
        (void)fwrite(p, 1, n + b->at_line_start, stderr);
        p += n + b->at_line_start;
    }
}

static void end_log(struct build *b)
{
    if (!b->at_line_start)
        (void)fputc('\n', stderr);
    b->at_line_start = true;
}

static void show_image(struct build *b, const json_t *line)
{
    const json_t *image = json_object_get(line, "image");
    char size[UNIT_TEXT_MAX], took[UNIT_TEXT_MAX];
    _cleanup_free_ char *name = text_line(member_text(image, "name"));
    _cleanup_free_ char *id = text_line(member_text(image, "id"));
    b->made = true;
    if (b->opts->quiet)
        (void)fprintf(b->answer, "%s\n", id);
    else
        (void)fprintf(b->answer, "%s  %s  %s, %s\n", name, id,
                      size_text(member_int(image, "size_bytes"), size),
                      duration_text(clock_mono_ms() - b->began_ms, took));
}

static void show_step(struct build *b, const json_t *line, const char *type)
{
    char size[UNIT_TEXT_MAX];
    if (strcmp(type, "log") == 0) {
        show_log(b, line);
        return;
    }
    end_log(b);
    if (strcmp(type, "step") == 0) {
        _cleanup_free_ char *text = text_line(member_text(line, "text"));
        (void)fprintf(stderr, "[%lld/%lld] %s\n", (long long)member_int(line, "n"),
                      (long long)member_int(line, "of"), text);
    } else if (strcmp(type, "cached") == 0) {
        (void)fputs("  cached\n", stderr);
    } else if (strcmp(type, "layer") == 0) {
        _cleanup_free_ char *digest = text_line(member_text(line, "digest"));
        (void)fprintf(stderr, "  layer %.19s  %s\n", digest,
                      size_text(member_int(line, "size_bytes"), size));
    } else if (strcmp(type, "warning") == 0) {
        cli_note("%s", member_text(line, "message"));
    }
}

static int on_line(void *arg, const json_t *line)
{
    struct build *b = arg;
    const char *type = member_text(line, "type");
    if (strcmp(type, "ping") == 0)
        return 0;
    if (strcmp(type, "error") == 0)
        (void)err_set(&b->failure, EIO, "%s", member_text(line, "message"));
    if (b->json) {
        b->made = b->made || strcmp(type, "image") == 0;
        (void)json_dumpf(line, stdout, JSON_COMPACT);
        (void)putchar('\n');
        return fflush(stdout) != 0 ? -EPIPE : 0;
    }
    if (strcmp(type, "image") == 0 || strcmp(type, "error") == 0)
        end_log(b);
    if (strcmp(type, "image") == 0)
        show_image(b, line);
    else if (!b->opts->quiet)
        show_step(b, line, type);
    return 0;
}

/* ---- the command ---- */

/* A word, or rules, one a line; NULL: the daemon's default. */
static char *network_text(const struct build_opts *o)
{
    char *text = o->rules.n ? xstrdup("") : o->net ? xstrdup(o->net) : NULL;
    for (size_t i = 0; i < o->rules.n; i++) {
        char *more = xasprintf("%s%s\n", text, o->rules.items[i]);
        free(text);
        text = more;
    }
    return text;
}

static char *build_path(const struct build *b, const char *name)
{
    char *path = api_query(api_path("images", "build", NULL), "name", name);
    const struct opt_list *args = &b->opts->args;
    path = api_query(path, "dockerfile", b->context.dockerfile);
    if (b->opts->target)
        path = api_query(path, "target", b->opts->target);
    if (b->opts->no_cache)
        path = api_query(path, "no_cache", "true");
    _cleanup_free_ char *network = network_text(b->opts);
    if (network)
        path = api_query(path, "network", network);
    for (size_t i = 0; i < args->n; i++) {
        const char *end = strchrnul(args->items[i], '=');
        _cleanup_free_ char *key =
            xasprintf("arg.%.*s", (int)(end - args->items[i]), args->items[i]);
        const char *value = *end ? end + 1 : getenv(args->items[i]);
        if (value)
            path = api_query(path, key, value);
    }
    return path;
}

static int build(struct build *b, const char *dir, struct err *err)
{
    struct client *client = cli_client(b->cli, err);
    int r = client ? 0 : -EIO;
    if (r == 0 && strcmp(dir, "-") != 0)
        r = context_open(dir, b->opts->file, &b->context, err);
    else if (r == 0)
        b->context.dockerfile = xstrdup(b->opts->file ? b->opts->file : DOCKERFILE);
    if (r < 0)
        return r;
    _cleanup_free_ char *path = build_path(b, b->opts->name);
    _cleanup_(request_done) struct request call = { .method = "POST",
                                                    .path = path,
                                                    .source = send_context,
                                                    .source_len = -1,
                                                    .on_line = on_line,
                                                    .arg = b,
                                                    .timeout_s = -1,
                                                    .body_type = "application/x-tar" };
    r = client_perform(client, &call, err);
    if (b->context.pack && pack_error(b->context.pack)->code)
        *err = *pack_error(b->context.pack); /* why there was nothing more to send */
    if (r == 0 && b->failure.code) {
        *err = b->failure;
        r = -EIO;
    }
    if (r == 0 && !b->made)
        r = err_set(err, EIO, "the build ended without an image");
    return r;
}

int image_build(struct cli *cli, const char *name, const char *file, const char *dir)
{
    const struct build_opts o = { .name = name, .file = file };
    struct build b = {
        .cli = cli, .opts = &o, .began_ms = clock_mono_ms(), .at_line_start = true, .answer = stderr
    };
    struct err err = ERR_INIT;
    int r = build(&b, dir, &err);
    context_done(&b.context);
    return r < 0 ? cli_fail(cli, &err) : 0;
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    struct build b = {
        .cli = cli, .opts = opts, .began_ms = clock_mono_ms(), .at_line_start = true
    };
    b.answer = stdout;
    b.json = cli->json;
    struct err err = ERR_INIT;
    if (!b.opts->name)
        return cli_usage(cli, "-t NAME says what to call the image");
    if (b.opts->file && strcmp(b.opts->file, "-") == 0 && strcmp(argv[0], "-") == 0)
        return cli_usage(cli, "standard input cannot be both the Dockerfile and the context");
    if (strcmp(argv[0], "-") == 0 && isatty(STDIN_FILENO))
        return cli_usage(cli, "standard input is a terminal; pipe a tar into it");
    int r = build(&b, argv[0], &err);
    context_done(&b.context);
    return r < 0 ? cli_fail(cli, &err) : 0;
}

const struct command cmd_image_build = {
    .name = "image build",
    .alias = "build",
    .summary = "Make an image from a Dockerfile",
    .synopsis = "-t NAME [OPTIONS] PATH|-",
    .description =
        "Sends the directory PATH, without what its .dockerignore names, to the daemon, which "
        "does the steps of the Dockerfile in sandboxes: each that changes files makes a layer, "
        "and one whose files and words are as before is taken from the cache. `-` reads a tar "
        "from standard input instead.\n\n"
        "Commands of its steps reach every public address through the broker, as with other "
        "builders, unless --net or --rule says otherwise. With --json, the API's own lines.",
    .examples =
        (const struct example[]){
            { "The directory at hand", "warren image build -t mine ." },
            { "Another Dockerfile, and an argument",
              "warren image build -t mine -f docker/Dockerfile --build-arg VERSION=2 ." },
            { "One stage of several", "warren image build -t mine-test --target test ." },
            { "Steps that reach nothing, or one place alone",
              "warren image build -t mine --rule 'allow deb.example.com 443' ." },
            { "A Dockerfile alone", "warren image build -t mine -f - /var/empty <Dockerfile" },
            { NULL, NULL } },
    COMMAND_OPTS(build_table, struct build_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@file",
    .run = run,
};
