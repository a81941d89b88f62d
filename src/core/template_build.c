#include "core/template_build.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/log.h"
#include "core/digest.h"
#include "core/template_build_private.h"

#define LOG_MODULE "template"
#define BUILDS_KEPT 200 /* records of one owner */
#define LOGS_KEPT 16    /* of those that ended, of one owner */

static int not_found(struct err *err, const char *id)
{
    return err_fail(err, FAIL_BUILD_NOT_FOUND, "no build '%.64s' of this template", id);
}

/* ---- with the lock held ---- */

static struct template_builder *find(struct core *core, const char *owner, const char *template,
                                     const char *id)
{
    struct template_builds *all = &core->template_builds;
    for (size_t i = 0; i < all->n; i++) {
        struct template_builder *tb = all->items[i];
        if (strcmp(tb->b.id, id) == 0 && strcmp(tb->b.owner, owner) == 0 &&
            strcmp(tb->b.template, template) == 0)
            return tb;
    }
    return NULL;
}

static int add(struct core *core, struct template_builder *tb)
{
    struct template_builds *all = &core->template_builds;
    struct template_builder **items = reallocarray(all->items, all->n + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    all->items = items;
    all->items[all->n++] = tb;
    return 0;
}

static void unlist(struct core *core, size_t i)
{
    struct template_builds *all = &core->template_builds;
    all->n--;
    memmove(&all->items[i], &all->items[i + 1], (all->n - i) * sizeof(*all->items));
}

/* ---- without it ---- */

static void builder_free(struct template_builder *tb)
{
    if (!tb)
        return;
    atomic_store(&tb->cancel, true);
    if (tb->started)
        (void)pthread_join(tb->thread, NULL);
    build_log_done(&tb->log);
    boot_done(&tb->recipe.boot);
    template_done(&tb->base);
    if (tb->recipe.steps.password)
        explicit_bzero((char *)(uintptr_t)tb->recipe.steps.password,
                       strlen(tb->recipe.steps.password));
    arena_done(&tb->arena);
    free(tb);
}

/* ---- loading ---- */

static int load_row(void *ctx, const struct store_template_build *row)
{
    struct core *core = ctx;
    struct template_builder *tb = calloc(1, sizeof(*tb));
    if (!tb)
        return -ENOMEM;
    tb->core = core;
    template_build_from_row(row, &tb->b);
    int r = add(core, tb);
    if (r < 0)
        builder_free(tb);
    return r;
}

int template_builds_load(struct core *core, struct err *err)
{
    int r = store_template_build_each(core->store, load_row, core, err);
    return r == -ENOMEM ? err_set(err, ENOMEM, "cannot allocate the builds") : r;
}

void template_builds_stop(struct core *core)
{
    struct template_builds *all = &core->template_builds;
    for (size_t i = 0; i < all->n; i++)
        atomic_store(&all->items[i]->cancel, true);
    for (size_t i = 0; i < all->n; i++)
        builder_free(all->items[i]);
    free(all->items);
    all->items = NULL;
    all->n = 0;
}

/* Takes those of a template (NULL: all of the owner) out of the list, ends them and forgets them. */
static unsigned drop(struct core *core, const char *owner, const char *template)
{
    struct template_builds *all = &core->template_builds;
    for (unsigned n = 0;; n++) {
        struct template_builder *tb = NULL;
        (void)pthread_mutex_lock(&all->lock);
        for (size_t i = 0; i < all->n && !tb; i++)
            if (strcmp(all->items[i]->b.owner, owner) == 0 &&
                (!template || strcmp(all->items[i]->b.template, template) == 0)) {
                tb = all->items[i];
                unlist(core, i);
            }
        (void)pthread_mutex_unlock(&all->lock);
        if (!tb)
            return n;
        char id[TEMPLATE_BUILD_ID_SIZE];
        memcpy(id, tb->b.id, sizeof(id));
        builder_free(tb);
        (void)store_template_build_remove(core->store, id, NULL);
    }
}

void template_builds_drop(struct core *core, const char *owner)
{
    (void)drop(core, owner, NULL);
}

/* ---- asking for one ---- */

static int uuid(char out[TEMPLATE_BUILD_ID_SIZE], const unsigned char raw[16])
{
    char hex[33];
    hex_encode(raw, 16, hex);
    hex[12] = '4';
    hex[16] = "89ab"[raw[8] & 3];
    int n = snprintf(out, TEMPLATE_BUILD_ID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8,
                     hex + 12, hex + 16, hex + 20);
    return n == TEMPLATE_BUILD_ID_SIZE - 1 ? 0 : -EIO;
}

static int check(const struct template_build *b, struct err *err)
{
    bool good = name_valid(b->template);
    for (size_t i = 0; i < b->n_tags && good; i++)
        good = name_valid(b->tags[i]);
    return good ? 0
                : err_fail(err, FAIL_INVALID_FIELD,
                           "names and tags must be at most %d letters, digits, '.', '_' or '-', a "
                           "letter or digit first",
                           NAME_MAX_LEN);
}

/* The oldest that ended make room; also the logs of all but the last few. */
static struct template_builder *make_room(struct core *core, const char *owner, bool *ret_full)
{
    struct template_builds *all = &core->template_builds;
    struct template_builder *oldest = NULL;
    size_t n = 0, logs = 0, at = 0;
    for (size_t i = all->n; i-- > 0;) {
        struct template_builder *tb = all->items[i];
        if (strcmp(tb->b.owner, owner) != 0)
            continue;
        n++;
        if (tb->started && !tb->ended)
            continue;
        if (++logs > LOGS_KEPT)
            build_log_done(&tb->log);
        oldest = tb;
        at = i;
    }
    *ret_full = n >= BUILDS_KEPT && !oldest;
    if (n < BUILDS_KEPT || !oldest)
        return NULL;
    unlist(core, at);
    return oldest;
}

int template_build_request(struct core *core, struct template_build *b, struct err *err)
{
    unsigned char raw[16];
    bool full = false;
    int r = check(b, err);
    if (r < 0)
        return r;
    struct template_builder *tb = calloc(1, sizeof(*tb));
    if (!tb || random_bytes(raw, sizeof(raw)) < 0 || uuid(b->id, raw) < 0) {
        free(tb);
        return err_set(err, ENOMEM, "cannot allocate a build");
    }
    b->state = BUILD_WAITING;
    b->created_ms = b->updated_ms = clock_now_ms();
    tb->core = core;
    tb->b = *b;
    (void)pthread_mutex_lock(&core->template_builds.lock);
    struct template_builder *old = make_room(core, b->owner, &full);
    r = full ? -EBUSY : add(core, tb);
    (void)pthread_mutex_unlock(&core->template_builds.lock);
    if (old) {
        (void)store_template_build_remove(core->store, old->b.id, NULL);
        builder_free(old);
    }
    if (r < 0) {
        free(tb);
        return full ? err_fail_as(err, EBUSY, FAIL_CAPACITY, "%d builds go on already", BUILDS_KEPT)
                    : err_set(err, -r, "cannot allocate a build");
    }
    return template_build_save(core, b, err);
}

/* ---- starting it ---- */

/* What it begins from, by what the recipe says. */
static int resolve_base(struct core *core, struct template_builder *tb, struct err *err)
{
    struct template_recipe *recipe = &tb->recipe;
    if (!recipe->template)
        return 0;
    int r = template_get(core, tb->b.owner, recipe->template, &tb->base, err);
    if (r < 0)
        return r;
    const struct sandbox_spec *spec = &tb->base.spec;
    recipe->image = spec->image;
    recipe->steps.base_owner = tb->base.owner;
    if (spec->user)
        recipe->steps.user = spec->user;
    if (spec->workdir)
        recipe->steps.workdir = spec->workdir;
    if (recipe->boot.argv || recipe->boot.ready != READY_AT_ONCE)
        return 0;
    return boot_copy(&spec->boot, &recipe->boot) < 0 ? err_set(err, ENOMEM, "cannot copy a boot")
                                                     : 0;
}

/* Everything is checked in a builder of its own, then put in the place of the one asked for. */
int template_build_start(struct core *core, const char *owner, const char *template, const char *id,
                         const struct template_recipe *recipe, struct err *err)
{
    struct template_builds *all = &core->template_builds;
    struct template_builder *mine = calloc(1, sizeof(*mine));
    if (!mine)
        return err_set(err, ENOMEM, "cannot allocate a build");
    int r = template_build_get(core, owner, template, id, &mine->b, err);
    mine->core = core;
    if (r >= 0)
        r = template_recipe_copy(mine, recipe, err);
    if (r >= 0)
        r = boot_check(&mine->recipe.boot, err);
    if (r >= 0)
        r = resolve_base(core, mine, err);
    if (r >= 0) {
        (void)pthread_mutex_lock(&all->lock);
        struct template_builder *tb = find(core, owner, template, id);
        bool fits = tb && !tb->started && tb->b.state == BUILD_WAITING;
        if (fits) {
            for (size_t i = 0; i < all->n; i++)
                if (all->items[i] == tb)
                    all->items[i] = mine;
            mine->b.state = BUILD_RUNNING; /* to who asked, though others may be before it */
            r = thread_start(&mine->thread, template_build_run, mine, err);
            mine->started = r >= 0;
            if (r < 0) /* it stays what was asked for, without a recipe */
                for (size_t i = 0; i < all->n; i++)
                    if (all->items[i] == mine)
                        all->items[i] = tb;
        }
        (void)pthread_mutex_unlock(&all->lock);
        if (!fits)
            r = tb ? err_fail(err, FAIL_BUILD_STARTED, "this build was started already")
                   : not_found(err, id);
        else if (r >= 0)
            free(tb); /* it had nothing but its record */
    }
    if (r < 0)
        builder_free(mine);
    return r;
}

void template_build_become(struct template_builder *tb, enum template_build_state state,
                           const char *step, const char *message)
{
    struct err err = ERR_INIT;
    (void)pthread_mutex_lock(&tb->core->template_builds.lock);
    tb->b.state = state;
    tb->b.updated_ms = clock_now_ms();
    if (state == BUILD_READY || state == BUILD_BROKEN)
        tb->b.finished_ms = tb->b.updated_ms;
    (void)snprintf(tb->b.step, sizeof(tb->b.step), "%s", step);
    (void)snprintf(tb->b.message, sizeof(tb->b.message), "%s", message);
    struct template_build copy = tb->b;
    (void)pthread_mutex_unlock(&tb->core->template_builds.lock);
    if (!atomic_load(&tb->cancel) && template_build_save(tb->core, &copy, &err) < 0)
        log_warn("a build is not recorded template=%s err=\"%s\"", copy.template, err.msg);
}

/* ---- looking ---- */

int template_build_get(struct core *core, const char *owner, const char *template, const char *id,
                       struct template_build *ret_b, struct err *err)
{
    (void)pthread_mutex_lock(&core->template_builds.lock);
    const struct template_builder *tb = find(core, owner, template, id);
    if (tb)
        *ret_b = tb->b;
    (void)pthread_mutex_unlock(&core->template_builds.lock);
    return tb ? 0 : not_found(err, id);
}

int template_build_list(struct core *core, const char *owner, const char *template,
                        struct template_build **ret_list, size_t *ret_n, struct err *err)
{
    struct template_builds *all = &core->template_builds;
    size_t n = 0;
    (void)pthread_mutex_lock(&all->lock);
    struct template_build *list = calloc(all->n + 1, sizeof(*list));
    for (size_t i = all->n; list && i-- > 0;)
        if (strcmp(all->items[i]->b.owner, owner) == 0 &&
            (!template || strcmp(all->items[i]->b.template, template) == 0))
            list[n++] = all->items[i]->b;
    (void)pthread_mutex_unlock(&all->lock);
    if (!list)
        return err_set(err, ENOMEM, "cannot allocate the builds");
    *ret_list = list;
    *ret_n = n;
    return 0;
}

int template_build_log(struct core *core, const char *owner, const char *template, const char *id,
                       size_t offset, size_t max, enum build_log_level level,
                       template_build_line_fn *fn, void *ctx, struct err *err)
{
    size_t n = 0;
    (void)pthread_mutex_lock(&core->template_builds.lock);
    const struct template_builder *tb = find(core, owner, template, id);
    for (size_t i = 0; tb && i < tb->log.n && n < max; i++) {
        if (tb->log.lines[i].level < level)
            continue;
        if (offset) {
            offset--;
            continue;
        }
        fn(ctx, &tb->log.lines[i]);
        n++;
    }
    (void)pthread_mutex_unlock(&core->template_builds.lock);
    return tb ? 0 : not_found(err, id);
}

/* ---- templates ---- */

void template_build_of(const struct template *t, char ret_id[TEMPLATE_BUILD_ID_SIZE])
{
    const char *colon = t->spec.image ? strrchr(t->spec.image, ':') : NULL;
    unsigned char raw[16] = { 0 };
    if (colon && strncmp(t->spec.image, TEMPLATE_IMAGES, strlen(TEMPLATE_IMAGES)) == 0 &&
        strlen(colon + 1) == TEMPLATE_BUILD_ID_SIZE - 1) {
        memcpy(ret_id, colon + 1, TEMPLATE_BUILD_ID_SIZE);
        return;
    }
    for (size_t i = 0; t->id[i]; i++)
        raw[i % sizeof(raw)] = (unsigned char)(raw[i % sizeof(raw)] * 31 + (unsigned char)t->id[i]);
    (void)uuid(ret_id, raw);
}

int template_forget(struct core *core, const char *owner, const char *name, struct err *err)
{
    struct template *list = NULL;
    size_t n = 0, len = strlen(name);
    bool known = drop(core, owner, name) > 0;
    int r = template_list(core, owner, &list, &n, err);
    for (size_t i = 0; i < n && r >= 0; i++) {
        bool its = strncmp(list[i].name, name, len) == 0 &&
                   (list[i].name[len] == '\0' || list[i].name[len] == ':');
        if (!its || strcmp(list[i].owner, owner) != 0)
            continue;
        r = template_remove(core, owner, list[i].name, err);
        known = true;
    }
    template_list_free(list, n);
    if (r >= 0)
        template_images_sweep(core, owner);
    return r < 0 || known ? r : template_remove(core, owner, name, err); /* says it is not there */
}

static bool under_way(struct core *core, const char *owner, const char *id)
{
    struct template_builds *all = &core->template_builds;
    bool found = false;
    (void)pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->n && !found; i++)
        found = strcmp(all->items[i]->b.id, id) == 0 &&
                strcmp(all->items[i]->b.owner, owner) == 0 &&
                all->items[i]->b.state == BUILD_RUNNING;
    (void)pthread_mutex_unlock(&all->lock);
    return found;
}

void template_images_sweep(struct core *core, const char *owner)
{
    struct image *list = NULL;
    size_t n = 0;
    if (image_list(core, owner, TEMPLATE_IMAGES, &list, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        const char *colon = strrchr(list[i].name, ':');
        if (strcmp(list[i].owner, owner) == 0 && colon && !under_way(core, owner, colon + 1))
            (void)image_remove(core, owner, list[i].name, NULL); /* refused while one uses it */
    }
    free(list);
}
