#include "core/table.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/quota.h"
#include "core/spec.h"
#include "core/wait.h"

#define BUCKETS_FIRST 256

int table_init(struct table *t)
{
    (void)pthread_mutex_init(&t->lock, NULL);
    t->buckets = BUCKETS_FIRST;
    t->by_id = calloc(t->buckets, sizeof(*t->by_id));
    t->by_name = calloc(t->buckets, sizeof(*t->by_name));
    if (!t->by_id || !t->by_name)
        return -ENOMEM;
    return random_bytes(&t->seed, sizeof(t->seed));
}

void table_done(struct table *t)
{
    for (size_t i = 0; i < t->n; i++)
        box_free(t->sorted[i]);
    free(t->sorted);
    free(t->by_id);
    free(t->by_name);
    (void)pthread_mutex_destroy(&t->lock);
}

/* ---- one box ---- */

struct box *box_new(const char *owner, struct sandbox_spec *spec, const char *tree)
{
    struct box *b = calloc(1, sizeof(*b));
    if (!b)
        return NULL;
    (void)snprintf(b->s.owner, sizeof(b->s.owner), "%s", owner);
    (void)snprintf(b->tree, sizeof(b->tree), "%s", tree);
    b->s.spec = *spec;
    memset(spec, 0, sizeof(*spec));
    b->busy = true;
    wait_init(&b->freed);
    return b;
}

void box_free(struct box *b)
{
    if (!b)
        return;
    sandbox_done(&b->s);
    samples_done(&b->samples);
    free(b->ports);
    free(b->leases);
    uses_done(&b->uses);
    (void)pthread_cond_destroy(&b->freed);
    free(b);
}

void sandbox_done(struct sandbox *s)
{
    sandbox_spec_done(&s->spec);
}

int sandbox_copy(const struct sandbox *from, struct sandbox *ret_to)
{
    struct sandbox to = *from;
    int r = spec_copy(&from->spec, &to.spec);
    if (r >= 0)
        *ret_to = to;
    return r;
}

/* ---- finding; the lock is held ---- */

static size_t bucket(const struct table *t, const char *a, const char *b)
{
    uint64_t h = t->seed;
    for (; *a; a++)
        h = (h ^ (unsigned char)*a) * 0x100000001b3ull;
    for (; *b; b++)
        h = (h ^ (unsigned char)*b) * 0x100000001b3ull;
    h ^= h >> 29;
    return (size_t)(h & (t->buckets - 1));
}

static bool owned_by(const struct box *b, const char *owner)
{
    return !owner || strcmp(b->s.owner, owner) == 0;
}

static struct box *find_name(struct table *t, const char *owner, const char *name)
{
    struct box *b = t->by_name[bucket(t, owner, name)];
    while (b && !(owned_by(b, owner) && strcmp(b->s.spec.name, name) == 0))
        b = b->next_name;
    return b;
}

struct box *box_find(struct table *t, const char *owner, const char *who)
{
    struct box *b = t->by_id[bucket(t, who, "")];
    while (b && !(strcmp(b->s.id, who) == 0 && owned_by(b, owner)))
        b = b->next_id;
    return b || !owner ? b : find_name(t, owner, who);
}

static int compare(const struct box *b, int64_t created_ms, const char *id)
{
    if (b->s.created_ms != created_ms)
        return b->s.created_ms < created_ms ? -1 : 1;
    return strcmp(b->s.id, id);
}

size_t box_after(struct table *t, int64_t created_ms, const char *id)
{
    size_t lo = 0, hi = t->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare(t->sorted[mid], created_ms, id) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* ---- linking; the lock is held ---- */

static void link_id(struct table *t, struct box *b)
{
    struct box **head = &t->by_id[bucket(t, b->s.id, "")];
    b->next_id = *head;
    *head = b;
}

static void link_name(struct table *t, struct box *b)
{
    if (!b->s.spec.name)
        return;
    struct box **head = &t->by_name[bucket(t, b->s.owner, b->s.spec.name)];
    b->next_name = *head;
    *head = b;
}

static void unlink_id(struct table *t, struct box *b)
{
    struct box **at = &t->by_id[bucket(t, b->s.id, "")];
    while (*at != b)
        at = &(*at)->next_id;
    *at = b->next_id;
}

static void unlink_name(struct table *t, struct box *b)
{
    if (!b->s.spec.name)
        return;
    struct box **at = &t->by_name[bucket(t, b->s.owner, b->s.spec.name)];
    while (*at != b)
        at = &(*at)->next_name;
    *at = b->next_name;
}

static int make_room(struct table *t)
{
    if (t->n == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 64;
        struct box **p = reallocarray(t->sorted, cap, sizeof(struct box *));
        if (!p)
            return -ENOMEM;
        t->sorted = p;
        t->cap = cap;
    }
    if (t->n < t->buckets)
        return 0;
    struct box **ids = calloc(t->buckets * 2, sizeof(*ids));
    struct box **names = calloc(t->buckets * 2, sizeof(*names));
    if (!ids || !names) {
        free(ids);
        free(names);
        return 0; /* longer chains still work */
    }
    free(t->by_id);
    free(t->by_name);
    t->by_id = ids;
    t->by_name = names;
    t->buckets *= 2;
    for (size_t i = 0; i < t->n; i++) {
        link_id(t, t->sorted[i]);
        link_name(t, t->sorted[i]);
    }
    return 0;
}

static int add_locked(struct table *t, struct box *b)
{
    if (box_find(t, NULL, b->s.id))
        return -EEXIST;
    if (b->s.spec.name && find_name(t, b->s.owner, b->s.spec.name))
        return -EEXIST;
    int r = make_room(t);
    if (r < 0)
        return r;
    /* Two made in the same millisecond keep their order: the later one is dated a moment later. */
    if (b->s.state == SANDBOX_CREATING && b->s.created_ms <= t->newest_ms)
        b->s.created_ms = t->newest_ms + 1;
    if (b->s.created_ms > t->newest_ms)
        t->newest_ms = b->s.created_ms;
    size_t at = box_after(t, b->s.created_ms, b->s.id);
    memmove(t->sorted + at + 1, t->sorted + at, (t->n - at) * sizeof(struct box *));
    t->sorted[at] = b;
    t->n++;
    b->removed = false;
    link_id(t, b);
    link_name(t, b);
    return 0;
}

/* ---- public ---- */

int box_add(struct core *core, struct box *b)
{
    struct table *t = &core->table;
    (void)pthread_mutex_lock(&t->lock);
    int r = add_locked(t, b);
    (void)pthread_mutex_unlock(&t->lock);
    return r;
}

void box_remove(struct core *core, struct box *b)
{
    struct table *t = &core->table;
    (void)pthread_mutex_lock(&t->lock);
    unlink_id(t, b);
    unlink_name(t, b);
    size_t at = box_after(t, b->s.created_ms, b->s.id) - 1;
    memmove(t->sorted + at, t->sorted + at + 1, (t->n - at - 1) * sizeof(struct box *));
    t->n--;
    b->removed = true;
    (void)pthread_mutex_unlock(&t->lock);
}

static int name_taken(const char *name, struct err *err)
{
    return err_fail(err, FAIL_NAME_TAKEN,
                    "the name '%s' is taken; names are unique among your sandboxes", name);
}

int box_admit(struct core *core, struct box *b, struct err *err)
{
    static const int64_t nothing[QUOTA_COUNT];
    struct table *t = &core->table;
    int64_t share[QUOTA_COUNT];
    quota_of(&b->s.spec, true, share);
    if (b->s.spec.n_mounts)
        volumes_learn_sharing(core);
    (void)pthread_mutex_lock(&t->lock);
    int r = quota_check(core, b->s.owner, nothing, share, err);
    if (r >= 0)
        r = volumes_resolve(core, b->s.owner, &b->s.spec, err);
    if (r >= 0)
        r = volumes_admit(core, b, err);
    if (r >= 0) {
        r = add_locked(t, b);
        if (r == -EEXIST && b->s.spec.name)
            r = name_taken(b->s.spec.name, err);
        else if (r < 0)
            r = err_set(err, -r, "cannot add a sandbox");
    }
    (void)pthread_mutex_unlock(&t->lock);
    return r;
}

int box_swap_spec(struct core *core, struct box *b, struct sandbox_spec *spec, bool admit,
                  struct err *err)
{
    struct table *t = &core->table;
    int64_t before[QUOTA_COUNT], after[QUOTA_COUNT];
    int r = 0;
    (void)pthread_mutex_lock(&t->lock);
    struct box *other = spec->name ? find_name(t, b->s.owner, spec->name) : NULL;
    if (other && other != b)
        r = name_taken(spec->name, err);
    if (r >= 0 && admit) {
        quota_of(&b->s.spec, quota_runs(b), before);
        quota_of(spec, quota_runs(b), after);
        r = quota_check(core, b->s.owner, before, after, err);
    }
    if (r >= 0) {
        unlink_name(t, b);
        struct sandbox_spec old = b->s.spec;
        b->s.spec = *spec;
        *spec = old;
        link_name(t, b);
    }
    (void)pthread_mutex_unlock(&t->lock);
    return r;
}

int box_starting(struct core *core, struct box *b, struct err *err)
{
    struct table *t = &core->table;
    int64_t before[QUOTA_COUNT], after[QUOTA_COUNT];
    if (b->s.spec.n_mounts)
        volumes_learn_sharing(core);
    (void)pthread_mutex_lock(&t->lock);
    quota_of(&b->s.spec, quota_runs(b), before);
    quota_of(&b->s.spec, true, after);
    int r = quota_check(core, b->s.owner, before, after, err);
    if (r >= 0)
        r = volumes_admit(core, b, err);
    if (r >= 0)
        b->starting = true;
    (void)pthread_mutex_unlock(&t->lock);
    return r;
}

void box_started(struct core *core, struct box *b)
{
    (void)pthread_mutex_lock(&core->table.lock);
    b->starting = false;
    (void)pthread_mutex_unlock(&core->table.lock);
}

int box_hold(struct core *core, const char *owner, const char *who, int wait_ms, struct box **ret_b)
{
    struct table *t = &core->table;
    int64_t until = 0;
    int r = 0;
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, owner, who);
    if (!b)
        r = -ENOENT;
    while (r == 0 && b->busy) {
        if (!until)
            until = clock_mono_ms() + wait_ms;
        b->waiting++;
        int timed = wait_until(&b->freed, &t->lock, until);
        b->waiting--;
        if (b->removed) {
            bool last = b->waiting == 0 && !b->busy;
            (void)pthread_mutex_unlock(&t->lock);
            if (last)
                box_free(b);
            return -ENOENT;
        }
        if (timed == ETIMEDOUT && b->busy)
            r = -EBUSY;
    }
    if (r == 0) {
        b->busy = true;
        *ret_b = b;
    }
    (void)pthread_mutex_unlock(&t->lock);
    return r;
}

void box_release(struct core *core, struct box *b)
{
    struct table *t = &core->table;
    (void)pthread_mutex_lock(&t->lock);
    b->busy = false;
    bool last = b->removed && b->waiting == 0;
    if (b->waiting)
        (void)pthread_cond_broadcast(&b->freed);
    (void)pthread_mutex_unlock(&t->lock);
    if (last)
        box_free(b);
}

int box_copy(struct core *core, const struct box *b, struct sandbox *ret_s, struct err *err)
{
    (void)pthread_mutex_lock(&core->table.lock);
    int r = sandbox_copy(&b->s, ret_s);
    (void)pthread_mutex_unlock(&core->table.lock);
    return r < 0 ? err_set(err, -r, "cannot copy a sandbox") : 0;
}

int box_release_copy(struct core *core, struct box *b, int r, struct sandbox *ret_s,
                     struct err *err)
{
    if (r >= 0)
        r = box_copy(core, b, ret_s, err);
    box_release(core, b);
    return r;
}

bool box_tree_used(struct core *core, const char *tree)
{
    struct table *t = &core->table;
    bool used = false;
    (void)pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n && !used; i++)
        used = strcmp(t->sorted[i]->tree, tree) == 0;
    used = used || checkpoints_tree_used(core, tree);
    (void)pthread_mutex_unlock(&t->lock);
    return used;
}

bool box_image_used(struct core *core, const struct image *image)
{
    struct table *t = &core->table;
    bool used = false;
    (void)pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n && !used; i++) {
        const struct box *b = t->sorted[i];
        used = strcmp(b->tree, image->tree) == 0 &&
               image_meant(core, b->s.owner, b->s.spec.image, image);
    }
    (void)pthread_mutex_unlock(&t->lock);
    return used;
}
