/* Templates' sandboxes made ahead: booted, ready, and nobody's. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/keeper.h"
#include "core/pool.h"
#include "core/spec.h"
#include "core/template_memory.h"
#include "core/wait.h"

#define LOG_MODULE "pool"
#define RETRY_MS 2000 /* after the first failure; doubled with each */
#define RETRY_MAX_MS 300000
#define BY_USE_MS 900000 /* a sandbox that nobody asked for within that time was made in vain */
#define BY_USE_TEAM 4    /* shelves by use that are filled at the same time */
#define BY_USE_ALL 16

/* ---- with the lock held ---- */

bool shelf_has_room(const struct shelf *s)
{
    return s->n_ready < s->size && (!s->by_use || s->until_ms);
}

struct shelf *shelf_find(struct pool *p, const char *key)
{
    for (size_t i = 0; i < p->n_warm; i++)
        if (strcmp(p->warm[i].key, key) == 0)
            return &p->warm[i];
    return NULL;
}

static void shelf_done(struct shelf *s)
{
    sandbox_spec_done(&s->spec);
    free(s->ready);
}

/* The shelf that is emptiest for its size and may be filled now; else when to look again. */
static struct shelf *neediest(struct pool *p, int64_t now, int64_t *ret_at)
{
    struct shelf *best = NULL;
    *ret_at = 0;
    for (size_t i = 0; i < p->n_warm; i++) {
        struct shelf *s = &p->warm[i];
        if (s->tree[0] == '\0' || !shelf_has_room(s))
            continue;
        if (s->retry_ms > now) {
            if (*ret_at == 0 || s->retry_ms < *ret_at)
                *ret_at = s->retry_ms;
        } else if (!best || s->n_ready * best->size < best->n_ready * s->size) {
            best = s;
        }
    }
    return best;
}

/* ---- by use, with the lock held ---- */

static void empty(struct pool *p, struct shelf *s)
{
    while (s->n_ready)
        pool_trash_ready(p, s, s->n_ready - 1);
    if (strcmp(p->warming_key, s->key) == 0)
        atomic_store(&p->warm_cancel, true);
}

static void put_aside(struct pool *p, struct shelf *s)
{
    empty(p, s);
    s->until_ms = 0;
}

/* Those that were not used for long go. Returns when the next one does; 0: none is used. */
static int64_t put_aside_idle(struct pool *p, int64_t now)
{
    int64_t at = 0;
    for (size_t i = 0; i < p->n_warm; i++) {
        struct shelf *s = &p->warm[i];
        if (s->until_ms && s->until_ms <= now)
            put_aside(p, s);
        else if (s->until_ms && (at == 0 || s->until_ms < at))
            at = s->until_ms;
    }
    return at;
}

/* The one used longest ago makes room for another, the owner's first. */
static void make_room(struct pool *p, const char *owner)
{
    struct shelf *own = NULL, *any = NULL;
    unsigned n_own = 0, n = 0;
    for (size_t i = 0; i < p->n_warm; i++) {
        struct shelf *s = &p->warm[i];
        bool is_own = strcmp(s->owner, owner) == 0;
        if (!s->until_ms)
            continue;
        n++;
        n_own += is_own;
        if (is_own && (!own || s->until_ms < own->until_ms))
            own = s;
        if (!any || s->until_ms < any->until_ms)
            any = s;
    }
    if (n_own >= BY_USE_TEAM)
        put_aside(p, own);
    else if (n >= BY_USE_ALL)
        put_aside(p, any);
}

static void use(struct pool *p, struct shelf *s)
{
    if (!s->by_use)
        return;
    if (!s->until_ms)
        make_room(p, s->owner);
    s->until_ms = clock_mono_ms() + p->by_use_ms;
    s->memory.wanted = true;
    (void)pthread_cond_signal(&p->warm_wake);
}

/* ---- the thread ---- */

struct image_of {
    char key[ID_SIZE], owner[OWNER_MAX];
    char *image;
    char tree[KEEPER_IMAGE_SIZE];
};

static struct image_of *list_images(struct pool *p, size_t *ret_n)
{
    struct image_of *list = calloc(p->n_warm + 1, sizeof(*list));
    for (size_t i = 0; list && i < p->n_warm; i++) {
        memcpy(list[i].key, p->warm[i].key, ID_SIZE);
        memcpy(list[i].owner, p->warm[i].owner, OWNER_MAX);
        list[i].image = strdup(p->warm[i].spec.image ? p->warm[i].spec.image : SPEC_IMAGE);
    }
    *ret_n = list ? p->n_warm : 0;
    return list;
}

static void set_tree(struct pool *p, const struct image_of *of)
{
    struct shelf *s = shelf_find(p, of->key);
    if (!s || strcmp(s->tree, of->tree) == 0)
        return;
    empty(p, s);
    memcpy(s->tree, of->tree, sizeof(s->tree));
    shelf_memory_drop(p, s);
    s->retry_ms = s->failures = 0;
}

/* An image may be another one now: what was made of the old one goes. */
static void recheck(struct core *core, struct pool *p)
{
    size_t n;
    p->images_changed = false;
    struct image_of *list = list_images(p, &n);
    (void)pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < n; i++) {
        struct image image;
        if (list[i].image &&
            image_resolve(core, list[i].owner, list[i].image, &image, NULL, NULL) >= 0)
            memcpy(list[i].tree, image.tree, sizeof(list[i].tree));
    }
    (void)pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < n; i++) {
        set_tree(p, &list[i]);
        free(list[i].image);
    }
    free(list);
}

/* What a sandbox of this template is like, with what its image says. */
static int complete(struct core *core, const char *owner, const struct sandbox_spec *asked,
                    struct sandbox_spec *ret_spec, struct err *err)
{
    struct image_config config;
    struct image image;
    int r = spec_complete(asked, ret_spec);
    if (r < 0)
        return err_set(err, -r, "cannot copy a spec");
    r = image_resolve(core, owner, ret_spec->image, &image, &config, err);
    if (r < 0)
        return r;
    r = spec_take_image(asked, &config, ret_spec);
    image_config_done(&config);
    return r < 0 ? err_set(err, -r, "cannot copy an image's configuration") : 0;
}

/* What runs at the start has the network; one that nobody has yet has none, and gets its own when it
 * is handed out. */
static int boot_alone(struct core *core, const struct sandbox *s, const _Atomic bool *cancel,
                      struct err *err)
{
    int r = networks_attach(core, s, err);
    if (r >= 0)
        r = boot_run(core, s, false, cancel, err);
    if (networks_has(&s->spec))
        networks_detach(core, s->id);
    return r;
}

int warm_pool_try(struct core *core, const char *owner, const struct sandbox_spec *asked,
                  const _Atomic bool *cancel, struct err *err)
{
    struct sandbox s = { .state = SANDBOX_RUNNING };
    struct image image;
    (void)snprintf(s.owner, sizeof(s.owner), "%s", owner);
    int r = complete(core, owner, asked, &s.spec, err);
    if (r >= 0)
        r = image_resolve(core, owner, s.spec.image, &image, NULL, err);
    if (r >= 0 && id_random(s.id) < 0)
        r = err_set(err, EIO, "cannot make an id");
    if (r >= 0) {
        struct keeper_limits limits = spec_limits(&s.spec);
        r = keeper_ask_make(core, s.id, image.tree, &limits, err);
    }
    if (r >= 0) {
        r = boot_alone(core, &s, cancel, err);
        if (keeper_ask_cell(core, KEEPER_DELETE, s.id, NULL) < 0)
            log_warn("a template's trial stays until the next start cell=%s", s.id);
    }
    sandbox_spec_done(&s.spec);
    return r;
}

int shelf_work_begin(struct core *core, const struct shelf *s, struct shelf_work *w,
                     struct err *err)
{
    struct pool *p = &core->pool;
    *w = (struct shelf_work){ .s = { .state = SANDBOX_RUNNING },
                              .cell = { .limits = spec_limits(&s->spec) } };
    int r = spec_copy(&s->spec, &w->asked);
    memcpy(w->s.owner, s->owner, sizeof(w->s.owner));
    memcpy(w->cell.tree, s->tree, sizeof(w->cell.tree));
    memcpy(w->point, s->memory.point, sizeof(w->point));
    memcpy(p->warming, s->tree, sizeof(p->warming));
    memcpy(p->warming_key, s->key, sizeof(p->warming_key));
    atomic_store(&p->warm_cancel, false);
    (void)pthread_mutex_unlock(&p->lock);
    if (r < 0)
        return err_set(err, -r, "cannot copy a spec");
    r = complete(core, w->s.owner, &w->asked, &w->s.spec, err);
    if (r >= 0 && id_random(w->cell.id) < 0)
        r = err_set(err, EIO, "cannot make an id");
    memcpy(w->s.id, w->cell.id, sizeof(w->s.id));
    return r;
}

int shelf_work_boot(struct core *core, struct shelf_work *w, struct err *err)
{
    int r = keeper_ask_make(core, w->cell.id, w->cell.tree, &w->cell.limits, err);
    return r < 0 ? r : boot_alone(core, &w->s, &core->pool.warm_cancel, err);
}

struct shelf *shelf_work_end(struct core *core, struct shelf_work *w)
{
    struct pool *p = &core->pool;
    sandbox_spec_done(&w->s.spec);
    sandbox_spec_done(&w->asked);
    (void)pthread_mutex_lock(&p->lock);
    struct shelf *s = shelf_find(p, p->warming_key);
    p->warming[0] = p->warming_key[0] = '\0';
    (void)pthread_cond_broadcast(&p->changed);
    (void)pthread_cond_signal(&p->wake); /* there may be something to remove */
    return s && strcmp(s->tree, w->cell.tree) == 0 ? s : NULL;
}

int64_t shelf_retry(unsigned failures)
{
    int64_t wait = (int64_t)RETRY_MS << (failures < 8 ? failures : 8);
    return clock_mono_ms() + (wait < RETRY_MAX_MS ? wait : RETRY_MAX_MS);
}

static int make(struct core *core, const char *key, struct shelf_work *w, struct err *err)
{
    struct keeper_usage usage;
    int r;
    if (w->point[0]) {
        r = template_memory_copy(core, &w->s, w->cell.tree, w->point, err);
        warm_pool_copied(core, key, w->point, r, err);
    } else {
        r = shelf_work_boot(core, w, err);
    }
    if (r >= 0 && keeper_ask_stat(core, w->cell.id, &usage, NULL) >= 0)
        w->cell.cpu_us = usage.cpu_us;
    return r;
}

static void fill_one(struct core *core, struct pool *p, const struct shelf *shelf)
{
    struct err err = ERR_INIT;
    struct shelf_work w;
    char key[ID_SIZE];
    memcpy(key, shelf->key, sizeof(key));
    int r = shelf_work_begin(core, shelf, &w, &err);
    if (r >= 0)
        r = make(core, key, &w, &err);
    if (r < 0 && r != -ECANCELED && !atomic_load(&core->stopping))
        log_warn("no sandbox made ahead template=%s err=\"%s\"",
                 w.asked.template ? w.asked.template : "", err.msg);
    struct shelf *at = shelf_work_end(core, &w);
    if (r >= 0 && at && shelf_has_room(at))
        at->ready[at->n_ready++] = w.cell;
    else if (w.cell.id[0])
        pool_trash(p, &w.cell);
    if (at) {
        at->retry_ms = r < 0 ? shelf_retry(at->failures) : 0;
        at->failures = r < 0 ? at->failures + 1 : 0;
    }
}

static void *run(void *ctx)
{
    struct core *core = ctx;
    struct pool *p = &core->pool;
    (void)pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        int64_t at;
        if (p->images_changed) {
            recheck(core, p);
            continue;
        }
        if (p->n_stale) {
            shelf_memory_shed(core);
            continue;
        }
        int64_t now = clock_mono_ms(), idle_at = put_aside_idle(p, now);
        const struct shelf *s = neediest(p, now, &at), *m = shelf_memory_neediest(p, now, &at);
        at = at == 0 || (idle_at && idle_at < at) ? idle_at : at;
        if (m) /* what is made ahead is a copy of it */
            shelf_memory_fill(core, m);
        else if (s)
            fill_one(core, p, s);
        else if (at)
            (void)wait_until(&p->warm_wake, &p->lock, at);
        else
            (void)pthread_cond_wait(&p->warm_wake, &p->lock);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

int shelves_start(struct core *core, struct err *err)
{
    struct pool *p = &core->pool;
    p->by_use_ms = p->by_use_ms ? p->by_use_ms : BY_USE_MS;
    int r = thread_start(&p->warmer, run, core, err);
    p->warmer_started = r >= 0;
    return r;
}

void shelves_stop(struct core *core)
{
    struct pool *p = &core->pool;
    if (p->warmer_started) {
        (void)pthread_mutex_lock(&p->lock);
        p->stop = true;
        atomic_store(&p->warm_cancel, true);
        (void)pthread_cond_signal(&p->warm_wake);
        (void)pthread_mutex_unlock(&p->lock);
        (void)pthread_join(p->warmer, NULL);
        p->warmer_started = false;
    }
    (void)pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->n_warm; i++) {
        empty(p, &p->warm[i]);
        shelf_done(&p->warm[i]);
    }
    free(p->warm);
    free(p->stale);
    p->warm = NULL;
    p->stale = NULL; /* found at the next start: they are of no template's */
    p->n_warm = p->n_stale = 0;
    (void)pthread_mutex_unlock(&p->lock);
}

/* ---- for templates ---- */

static int stock(struct core *core, const char *key, const char *owner,
                 const struct sandbox_spec *spec, unsigned n, bool by_use, struct err *err)
{
    struct pool *p = &core->pool;
    struct shelf s = { .size = n, .by_use = by_use, .ready = calloc(n + 1, sizeof(*s.ready)) };
    s.memory.wanted = n > 0 && !by_use;
    (void)snprintf(s.key, sizeof(s.key), "%s", key);
    (void)snprintf(s.owner, sizeof(s.owner), "%s", owner);
    if (!s.ready || spec_copy(spec, &s.spec) < 0) {
        free(s.ready);
        return err_set(err, ENOMEM, "cannot allocate a pool of %u", n);
    }
    (void)pthread_mutex_lock(&p->lock);
    struct shelf *shelves = reallocarray(p->warm, p->n_warm + 1, sizeof(*shelves));
    if (shelves) {
        p->warm = shelves;
        p->warm[p->n_warm++] = s;
        p->images_changed = true; /* its tree is not known yet */
        (void)pthread_cond_signal(&p->warm_wake);
    }
    (void)pthread_mutex_unlock(&p->lock);
    if (shelves)
        return 0;
    shelf_done(&s);
    return err_set(err, ENOMEM, "cannot allocate a pool of %u", n);
}

int warm_pool_stock(struct core *core, const char *key, const char *owner,
                    const struct sandbox_spec *spec, unsigned n, struct err *err)
{
    return stock(core, key, owner, spec, n, false, err);
}

int warm_pool_stock_by_use(struct core *core, const char *key, const char *owner,
                           const struct sandbox_spec *spec, struct err *err)
{
    return stock(core, key, owner, spec, 1, true, err);
}

void warm_pool_use(struct core *core, const char *key)
{
    struct pool *p = &core->pool;
    (void)pthread_mutex_lock(&p->lock);
    struct shelf *s = shelf_find(p, key);
    if (s)
        use(p, s);
    (void)pthread_mutex_unlock(&p->lock);
}

void warm_pool_unstock(struct core *core, const char *key)
{
    struct pool *p = &core->pool;
    (void)pthread_mutex_lock(&p->lock);
    struct shelf *s = shelf_find(p, key);
    if (s) {
        empty(p, s);
        shelf_memory_drop(p, s);
        shelf_done(s);
        *s = p->warm[--p->n_warm];
        (void)pthread_cond_signal(&p->warm_wake);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

bool warm_pool_take_ready(struct core *core, const char *key, const char *tree,
                          const struct keeper_limits *limits, struct pool_cell *ret_cell)
{
    struct pool *p = &core->pool;
    (void)pthread_mutex_lock(&p->lock);
    struct shelf *s = shelf_find(p, key);
    bool found = s && s->n_ready && strcmp(s->tree, tree) == 0 &&
                 memcmp(&s->ready[0].limits, limits, sizeof(*limits)) == 0;
    if (s)
        use(p, s);
    if (found) {
        *ret_cell = s->ready[0]; /* the oldest: it has had the most time to settle */
        memmove(s->ready, s->ready + 1, --s->n_ready * sizeof(*s->ready));
        (void)pthread_cond_signal(&p->warm_wake);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return found;
}

unsigned warm_pool_stocked(struct core *core, const char *key, bool *ret_kept)
{
    struct pool *p = &core->pool;
    (void)pthread_mutex_lock(&p->lock);
    const struct shelf *s = shelf_find(p, key);
    unsigned n = s ? s->n_ready : 0;
    if (ret_kept)
        *ret_kept = s && s->memory.point[0];
    (void)pthread_mutex_unlock(&p->lock);
    return n;
}
