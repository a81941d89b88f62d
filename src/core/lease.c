#include "core/lease.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/idle.h"
#include "core/row.h"
#include "core/table.h"
#include "core/timers.h"

/* ---- with the table's lock held ---- */

static void drop(struct box *b, size_t at)
{
    memmove(&b->leases[at], &b->leases[at + 1], (b->n_leases - at - 1) * sizeof(*b->leases));
    b->n_leases--;
}

/* What is over is forgotten; then how long the others last. */
static void settle(struct core *core, struct box *b, int64_t now_ms)
{
    int64_t until = 0;
    for (size_t i = b->n_leases; i-- > 0;) {
        if (b->leases[i].until_ms <= now_ms)
            drop(b, i);
        else if (b->leases[i].until_ms > until)
            until = b->leases[i].until_ms;
    }
    b->s.leased_ms = until;
    b->idle_next_ms = idle_next(core, b, now_ms);
}

static int add(struct core *core, struct box *b, const struct lease *lease, int64_t now_ms)
{
    settle(core, b, now_ms);
    if (b->n_leases >= LEASES_MAX)
        return -EBUSY;
    struct lease *leases = reallocarray(b->leases, b->n_leases + 1, sizeof(*leases));
    if (!leases)
        return -ENOMEM;
    b->leases = leases;
    b->leases[b->n_leases++] = *lease;
    settle(core, b, now_ms);
    return 0;
}

static struct lease *find(struct box *b, const char *id)
{
    for (size_t i = 0; i < b->n_leases; i++)
        if (strcmp(b->leases[i].id, id) == 0)
            return &b->leases[i];
    return NULL;
}

/* ---- at rest ---- */

static int save(struct core *core, const char *sandbox, const struct lease *lease, struct err *err)
{
    struct store_lease row = { .id = lease->id,
                               .sandbox = sandbox,
                               .reason = lease->reason,
                               .created_ms = lease->created_ms,
                               .until_ms = lease->until_ms };
    (void)store_lease_prune(core->store, lease->created_ms, NULL);
    return store_lease_put(core->store, &row, err);
}

static int load_row(void *ctx, const struct store_lease *row)
{
    struct core *core = ctx;
    int64_t now = clock_now_ms();
    struct lease lease = { .created_ms = row->created_ms, .until_ms = row->until_ms };
    struct box *b = box_find(&core->table, NULL, row->sandbox);
    if (!b || !id_valid(row->id) || row->until_ms <= now)
        return 0;
    memcpy(lease.id, row->id, ID_SIZE);
    (void)snprintf(lease.reason, sizeof(lease.reason), "%s", row->reason);
    return add(core, b, &lease, now) == -ENOMEM ? -ENOMEM : 0;
}

int leases_load(struct core *core, struct err *err)
{
    int r = store_lease_each(core->store, load_row, core, err);
    return r == -ENOMEM ? err_set(err, ENOMEM, "cannot allocate the leases") : r;
}

/* ---- what clients ask for ---- */

static int describe(int64_t ms, const char *reason, struct lease *lease, struct err *err)
{
    if (ms < 1000 || ms > LEASE_SECONDS_MAX * 1000ll)
        return err_fail(err, FAIL_INVALID_FIELD, "'seconds' must be from 1 to %d",
                        LEASE_SECONDS_MAX);
    if (reason && strlen(reason) > LEASE_REASON_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "'reason' must have at most %d bytes",
                        LEASE_REASON_MAX);
    *lease = (struct lease){ .created_ms = clock_now_ms() };
    lease->until_ms = lease->created_ms + ms;
    (void)snprintf(lease->reason, sizeof(lease->reason), "%s", reason ? reason : "");
    int r = id_random(lease->id);
    return r < 0 ? err_set(err, -r, "cannot make an id") : 0;
}

static int keep(struct core *core, const char *sandbox, const struct lease *lease, struct err *err)
{
    struct table *t = &core->table;
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, NULL, sandbox);
    int r = b ? add(core, b, lease, lease->created_ms) : -ENOENT;
    (void)pthread_mutex_unlock(&t->lock);
    if (r == -EBUSY)
        return err_fail(err, FAIL_LEASE_LIMIT,
                        "sandbox '%s' has %d leases already; end one, or wait for the end of one",
                        sandbox, LEASES_MAX);
    if (r == -ENOENT)
        return row_missing(core, NULL, sandbox, NULL, err);
    return r < 0 ? err_set(err, -r, "cannot allocate a lease") : 0;
}

static bool forget(struct core *core, const char *owner, const char *who, const char *id)
{
    struct table *t = &core->table;
    int64_t now = clock_now_ms();
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, owner, who);
    struct lease *lease = b ? find(b, id) : NULL;
    bool there = lease && lease->until_ms > now;
    if (lease) {
        if (there)
            b->quiet_ms = now; /* it was needed until now */
        drop(b, (size_t)(lease - b->leases));
        settle(core, b, now);
    }
    (void)pthread_mutex_unlock(&t->lock);
    return there;
}

int lease_take(struct core *core, const char *owner, const char *who, int64_t ms,
               const char *reason, struct lease *ret_lease, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    struct lease lease;
    bool woken;
    int r = describe(ms, reason, &lease, err);
    if (r >= 0)
        r = sandbox_wake(core, owner, who, &s, &woken, err);
    if (r < 0)
        return r;
    r = keep(core, s.id, &lease, err);
    if (r >= 0) {
        r = save(core, s.id, &lease, err);
        if (r < 0)
            (void)forget(core, owner, s.id, lease.id);
    }
    sandbox_leave(core, s.id);
    timers_changed(core);
    if (r >= 0)
        *ret_lease = lease;
    return r;
}

int lease_list(struct core *core, const char *owner, const char *who, struct lease **ret_leases,
               size_t *ret_n, struct err *err)
{
    struct table *t = &core->table;
    int64_t now = clock_now_ms();
    struct lease *list = calloc(LEASES_MAX, sizeof(*list));
    size_t n = 0;
    if (!list)
        return err_set(err, ENOMEM, "cannot allocate the leases");
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, owner, who);
    for (size_t i = 0; b && i < b->n_leases; i++)
        if (b->leases[i].until_ms > now)
            list[n++] = b->leases[i];
    (void)pthread_mutex_unlock(&t->lock);
    if (!b) {
        free(list);
        return row_missing(core, owner, who, NULL, err);
    }
    *ret_leases = list;
    *ret_n = n;
    return 0;
}

int lease_end(struct core *core, const char *owner, const char *who, const char *id,
              struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int r = sandbox_get(core, owner, who, &s, err);
    if (r < 0)
        return r;
    if (!forget(core, owner, s.id, id))
        return err_fail(err, FAIL_LEASE_NOT_FOUND, "sandbox '%s' has no lease '%.64s'", s.id, id);
    timers_changed(core);
    return store_lease_remove(core->store, id, err);
}
