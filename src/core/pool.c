#include "core/pool.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/keeper.h"
#include "core/spec.h"
#include "core/wait.h"

#define LOG_MODULE "pool"
#define QUIET_MS 5      /* after the last create: the requests that follow it come first */
#define QUIET_LOW_MS 1  /* less than half full: the next creates would pay more */
#define HELD_OFF_MS 20  /* never held off for longer than this by creates in a row */
#define RETRY_MS 5000   /* after a failure */
#define FORGET_MS 30000 /* deleting a poolful of cells, on a slow machine */

/* ---- with the lock held ---- */

static void unsteer(const struct pool_cell *cell)
{
    for (size_t i = 0; cell->steered && i < KEEPER_STEER_FDS; i++)
        (void)close(cell->steer[i]);
}

void pool_trash(struct pool *p, const struct pool_cell *cell)
{
    if (p->n_trash == p->cap_trash) {
        size_t cap = p->cap_trash ? p->cap_trash * 2 : 16;
        struct pool_cell *items = reallocarray(p->trash, cap, sizeof(*items));
        if (!items) {
            unsteer(cell);
            return; /* lost until the next start, which removes what nobody knows */
        }
        p->trash = items;
        p->cap_trash = cap;
    }
    p->trash[p->n_trash++] = *cell;
}

static void wake(struct pool *p)
{
    if (p->asleep)
        (void)pthread_cond_signal(&p->wake);
}

void pool_trash_ready(struct pool *p, struct shelf *s, unsigned i)
{
    pool_trash(p, &s->ready[i]);
    s->ready[i] = s->ready[--s->n_ready];
    wake(p);
}

/* All that are of this tree, or with `tree` NULL all that are of another than the shelf's. */
static void trash_tree(struct pool *p, struct shelf *s, const char *tree)
{
    for (unsigned i = s->n_ready; i-- > 0;)
        if (tree ? strcmp(s->ready[i].tree, tree) == 0 : strcmp(s->ready[i].tree, s->tree) != 0)
            pool_trash_ready(p, s, i);
}

static void want(struct pool *p, const char *tree)
{
    memcpy(p->blank.tree, tree, strlen(tree) + 1);
    p->other[0] = '\0';
    p->blank.retry_ms = 0;
    trash_tree(p, &p->blank, NULL);
    wake(p);
}

/* An image asked for once among others is not worth a new poolful; twice in a row is. */
static void note_asked(struct pool *p, const char *tree)
{
    int64_t now = clock_mono_ms();
    p->last_take_ms = now;
    if (!p->first_take_ms)
        p->first_take_ms = now;
    if (strcmp(p->blank.tree, tree) == 0)
        p->other[0] = '\0';
    else if (p->blank.tree[0] == '\0' || strcmp(p->other, tree) == 0)
        want(p, tree);
    else
        memcpy(p->other, tree, strlen(tree) + 1);
}

/* Milliseconds until the next cell should be made; -1: none is missing. */
static int64_t make_in(const struct pool *p, int64_t now)
{
    if (p->blank.tree[0] == '\0' || p->blank.n_ready >= p->blank.size)
        return -1;
    int64_t due =
        p->last_take_ms + (p->blank.n_ready * 2 < p->blank.size ? QUIET_LOW_MS : QUIET_MS);
    if (due > p->first_take_ms + HELD_OFF_MS)
        due = p->first_take_ms + HELD_OFF_MS;
    if (due < p->blank.retry_ms)
        due = p->blank.retry_ms;
    return due > now ? due - now : 0;
}

/* ---- the thread ---- */

static int make(struct core *core, struct pool_cell *cell, struct err *err)
{
    int r = id_random(cell->id);
    if (r < 0)
        return err_set(err, -r, "cannot make an id");
    r = keeper_ask_make(core, cell->id, cell->tree, &cell->limits, err);
    if (r < 0 && r != -ENOTCONN)
        (void)keeper_ask_cell(core, KEEPER_DELETE, cell->id, NULL);
    return r;
}

/* What a create with a network would wait for otherwise. */
static int steer(struct core *core, struct pool_cell *cell, struct err *err)
{
    int r = keeper_ask_steer(core, cell->id, cell->steer, err);
    if (r < 0) {
        (void)keeper_ask_cell(core, KEEPER_DELETE, cell->id, NULL);
        return r;
    }
    cell->steered = true;
    networks_point(core, cell->id);
    return 0;
}

static unsigned count_steered(const struct pool *p)
{
    unsigned n = 0;
    for (unsigned i = 0; i < p->blank.n_ready; i++)
        n += p->blank.ready[i].steered;
    return n;
}

static void fill_one(struct core *core, struct pool *p)
{
    struct err err = ERR_INIT;
    struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    struct pool_cell cell = { .limits = spec_limits(&spec) };
    memcpy(cell.tree, p->blank.tree, sizeof(cell.tree));
    memcpy(p->working, p->blank.tree, sizeof(p->working));
    bool steered = core->broker_fd >= 0 && count_steered(p) < p->steered;
    (void)pthread_mutex_unlock(&p->lock);
    int r = make(core, &cell, &err);
    if (r >= 0 && steered)
        r = steer(core, &cell, &err);
    if (r < 0 && !atomic_load(&core->stopping))
        log_warn("no cell made ahead err=\"%s\"", err.msg);
    (void)pthread_mutex_lock(&p->lock);
    p->working[0] = '\0';
    if (r < 0)
        p->blank.retry_ms = clock_mono_ms() + RETRY_MS;
    else if (strcmp(cell.tree, p->blank.tree) == 0 && p->blank.n_ready < p->blank.size)
        p->blank.ready[p->blank.n_ready++] = cell;
    else
        pool_trash(p, &cell);
    if (p->blank.n_ready == p->blank.size)
        p->first_take_ms = 0;
}

static void empty_one(struct core *core, struct pool *p)
{
    struct pool_cell cell = p->trash[--p->n_trash];
    struct err err = ERR_INIT;
    memcpy(p->working, cell.tree, sizeof(p->working));
    (void)pthread_mutex_unlock(&p->lock);
    unsteer(&cell);
    if (keeper_ask_cell(core, KEEPER_DELETE, cell.id, &err) < 0)
        log_warn("blank cell stays until the next start cell=%s err=\"%s\"", cell.id, err.msg);
    (void)pthread_mutex_lock(&p->lock);
    p->working[0] = '\0';
}

static void *run(void *ctx)
{
    struct core *core = ctx;
    struct pool *p = &core->pool;
    (void)pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        int64_t now = clock_mono_ms(), in = p->n_trash ? 0 : make_in(p, now);
        if (in != 0) {
            p->asleep = in < 0 || in > HELD_OFF_MS; /* short waits need no waking */
            if (in < 0)
                (void)pthread_cond_wait(&p->wake, &p->lock);
            else
                (void)wait_until(&p->wake, &p->lock, now + in);
            p->asleep = false;
            continue;
        }
        if (p->n_trash)
            empty_one(core, p);
        else
            fill_one(core, p);
        (void)pthread_cond_broadcast(&p->changed);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

int warm_pool_start(struct core *core, unsigned size, struct err *err)
{
    struct pool *p = &core->pool;
    struct image image;
    p->blank.ready = calloc(size + 1, sizeof(*p->blank.ready));
    if (!p->blank.ready)
        return err_set(err, ENOMEM, "cannot allocate a pool of %u", size);
    p->blank.size = size;
    if (image_resolve(core, OWNER_DEFAULT, SPEC_IMAGE, &image, NULL, NULL) >= 0)
        want(p, image.tree);
    int r = thread_start(&p->thread, run, core, err);
    p->started = r >= 0;
    return r < 0 ? r : shelves_start(core, err);
}

void warm_pool_stop(struct core *core)
{
    struct pool *p = &core->pool;
    shelves_stop(core);
    if (p->started) {
        (void)pthread_mutex_lock(&p->lock);
        p->stop = true;
        (void)pthread_cond_signal(&p->wake);
        (void)pthread_mutex_unlock(&p->lock);
        (void)pthread_join(p->thread, NULL);
        p->started = false;
        for (unsigned i = 0; i < p->blank.n_ready; i++)
            pool_trash(p, &p->blank.ready[i]);
        for (size_t i = 0; i < p->n_trash; i++) {
            unsteer(&p->trash[i]);
            (void)keeper_ask_cell(core, KEEPER_DELETE, p->trash[i].id, NULL);
        }
    }
    free(p->blank.ready);
    free(p->trash);
    p->blank.ready = p->trash = NULL;
    p->blank.n_ready = p->blank.size = 0;
    p->n_trash = p->cap_trash = 0;
}

/* ---- for requests ---- */

static int find_ready(const struct shelf *s, bool steered)
{
    for (unsigned i = s->n_ready; i-- > 0;)
        if (s->ready[i].steered == steered)
            return (int)i;
    return -1;
}

/* Which of the ready ones, or -1. One that is not steered will do for a network, and takes longer; one
 * that is will not do without, so it makes room for one that will. */
static int choose(struct pool *p, bool network)
{
    int i = find_ready(&p->blank, network);
    if (i >= 0 || p->blank.n_ready == 0)
        return i;
    if (network) {
        p->steered += p->steered < p->blank.size;
        return find_ready(&p->blank, false);
    }
    p->steered -= p->steered > 0;
    pool_trash_ready(p, &p->blank, 0);
    return -1;
}

bool warm_pool_take(struct core *core, const char *tree, bool network, struct pool_cell *ret_cell)
{
    struct pool *p = &core->pool;
    bool found = false;
    if (p->blank.size == 0)
        return false;
    (void)pthread_mutex_lock(&p->lock);
    note_asked(p, tree);
    int i = strcmp(p->blank.tree, tree) == 0 ? choose(p, network) : -1;
    if (i >= 0) {
        *ret_cell = p->blank.ready[i];
        p->blank.ready[i] = p->blank.ready[--p->blank.n_ready];
        found = true;
    }
    wake(p);
    (void)pthread_mutex_unlock(&p->lock);
    return found;
}

void warm_pool_give_back(struct core *core, const struct pool_cell *cell)
{
    struct pool *p = &core->pool;
    (void)pthread_mutex_lock(&p->lock);
    if (strcmp(p->blank.tree, cell->tree) == 0 && p->blank.n_ready < p->blank.size)
        p->blank.ready[p->blank.n_ready++] = *cell;
    else
        pool_trash(p, cell);
    wake(p);
    (void)pthread_mutex_unlock(&p->lock);
}

void warm_pool_discard(struct core *core, const struct pool_cell *cell)
{
    struct pool *p = &core->pool;
    (void)pthread_mutex_lock(&p->lock);
    pool_trash(p, cell);
    wake(p);
    (void)pthread_mutex_unlock(&p->lock);
}

void warm_pool_replace(struct core *core, const char *old, const char *tree)
{
    struct pool *p = &core->pool;
    (void)pthread_mutex_lock(&p->lock);
    p->images_changed = true;
    (void)pthread_cond_signal(&p->warm_wake);
    if (p->blank.tree[0] == '\0' || (old && strcmp(p->blank.tree, old) == 0))
        want(p, tree);
    (void)pthread_mutex_unlock(&p->lock);
}

static bool holds(const struct shelf *s, const char *tree)
{
    for (unsigned i = 0; i < s->n_ready; i++)
        if (strcmp(s->ready[i].tree, tree) == 0)
            return true;
    return false;
}

static bool knows(const struct pool *p, const char *tree)
{
    bool found =
        strcmp(p->working, tree) == 0 || strcmp(p->warming, tree) == 0 || holds(&p->blank, tree);
    for (size_t i = 0; i < p->n_warm && !found; i++)
        found = holds(&p->warm[i], tree);
    for (size_t i = 0; i < p->n_trash && !found; i++)
        found = strcmp(p->trash[i].tree, tree) == 0;
    return found;
}

void warm_pool_forget(struct core *core, const char *tree)
{
    struct pool *p = &core->pool;
    if (!p->started)
        return;
    int64_t until = clock_mono_ms() + FORGET_MS;
    (void)pthread_mutex_lock(&p->lock);
    if (strcmp(p->blank.tree, tree) == 0)
        p->blank.tree[0] = '\0';
    if (strcmp(p->other, tree) == 0)
        p->other[0] = '\0';
    trash_tree(p, &p->blank, tree);
    for (size_t k = 0; k < p->n_warm; k++) {
        trash_tree(p, &p->warm[k], tree);
        if (strcmp(p->warm[k].tree, tree) == 0)
            p->warm[k].tree[0] = '\0'; /* the warmer finds out what its image is now */
    }
    if (strcmp(p->warming, tree) == 0)
        atomic_store(&p->warm_cancel, true);
    p->images_changed = true;
    (void)pthread_cond_signal(&p->warm_wake);
    while (!p->stop && knows(p, tree))
        if (wait_until(&p->changed, &p->lock, until) == ETIMEDOUT)
            break;
    (void)pthread_mutex_unlock(&p->lock);
}

static bool died(struct pool *p, struct shelf *s, const char *id)
{
    for (unsigned i = 0; i < s->n_ready; i++)
        if (strcmp(s->ready[i].id, id) == 0) {
            pool_trash_ready(p, s, i);
            return true;
        }
    return false;
}

bool warm_pool_died(struct core *core, const char *id)
{
    struct pool *p = &core->pool;
    (void)pthread_mutex_lock(&p->lock);
    bool found = died(p, &p->blank, id);
    for (size_t i = 0; i < p->n_warm && !found; i++)
        found = died(p, &p->warm[i], id);
    (void)pthread_cond_signal(&p->warm_wake);
    (void)pthread_mutex_unlock(&p->lock);
    return found;
}

unsigned warm_pool_ready(struct core *core)
{
    struct pool *p = &core->pool;
    (void)pthread_mutex_lock(&p->lock);
    unsigned n = p->blank.n_ready;
    (void)pthread_mutex_unlock(&p->lock);
    return n;
}

static void list_ids(const struct shelf *s, char (*ids)[ID_SIZE], size_t *n)
{
    for (unsigned i = 0; i < s->n_ready; i++)
        memcpy(ids[(*n)++], s->ready[i].id, ID_SIZE);
}

int warm_pool_ids(struct core *core, char (**ret_ids)[ID_SIZE], size_t *ret_n)
{
    struct pool *p = &core->pool;
    size_t n = 0;
    (void)pthread_mutex_lock(&p->lock);
    size_t room = p->blank.n_ready + 1;
    for (size_t i = 0; i < p->n_warm; i++)
        room += p->warm[i].n_ready;
    char(*ids)[ID_SIZE] = calloc(room, sizeof(*ids));
    if (ids) {
        list_ids(&p->blank, ids, &n);
        for (size_t i = 0; i < p->n_warm; i++)
            list_ids(&p->warm[i], ids, &n);
    }
    (void)pthread_mutex_unlock(&p->lock);
    if (!ids)
        return -ENOMEM;
    *ret_ids = ids;
    *ret_n = n;
    return 0;
}
