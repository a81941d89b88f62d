#include "core/quota.h"

#include <errno.h>
#include <string.h>

#include "core/ledger.h"

#define MIB (1024ull * 1024)

static const char *const names[QUOTA_COUNT] = {
    [QUOTA_SANDBOXES] = "sandboxes",
    [QUOTA_CPU_MILLIS] = "cpus",
    [QUOTA_MEMORY_MB] = "memory_mb",
    [QUOTA_DISK_MB] = "disk_mb",
};

struct team *team_find(struct core *core, const char *name)
{
    struct teams *t = &core->teams;
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->items[i].name, name) == 0)
            return &t->items[i];
    return NULL;
}

void quota_of(const struct sandbox_spec *spec, bool runs, int64_t ret_v[QUOTA_COUNT])
{
    ret_v[QUOTA_SANDBOXES] = 1;
    ret_v[QUOTA_DISK_MB] = (int64_t)(spec->disk_bytes / MIB);
    ret_v[QUOTA_CPU_MILLIS] = runs ? spec->cpu_millis : 0;
    ret_v[QUOTA_MEMORY_MB] = runs ? (int64_t)(spec->memory_bytes / MIB) : 0;
}

bool quota_runs(const struct box *b)
{
    return b->starting || b->s.state == SANDBOX_CREATING || b->s.state == SANDBOX_RUNNING ||
           b->s.state == SANDBOX_STOPPING || b->s.state == SANDBOX_PAUSING;
}

void quota_in_use(struct core *core, const char *owner, int64_t ret_in_use[QUOTA_COUNT])
{
    const struct table *t = &core->table;
    memset(ret_in_use, 0, QUOTA_COUNT * sizeof(*ret_in_use));
    for (size_t i = 0; i < t->n; i++) {
        const struct box *b = t->sorted[i];
        int64_t share[QUOTA_COUNT];
        if (owner && strcmp(b->s.owner, owner) != 0)
            continue;
        quota_of(&b->s.spec, quota_runs(b), share);
        for (int q = 0; q < QUOTA_COUNT; q++)
            ret_in_use[q] += share[q];
    }
    build_in_use(core, owner, ret_in_use);
    if (!owner)
        return;
    int64_t stored[STORED_COUNT] = { [STORED_VOLUMES] = volumes_in_use_mb(core, owner) };
    stored_add(core, owner, stored);
    for (int i = 0; i < STORED_COUNT; i++)
        ret_in_use[QUOTA_DISK_MB] += stored[i];
}

void quota_disk(struct core *core, const char *owner, int64_t ret_mb[STORED_COUNT])
{
    const struct table *t = &core->table;
    int64_t builds[QUOTA_COUNT] = { 0 };
    memset(ret_mb, 0, STORED_COUNT * sizeof(*ret_mb));
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->sorted[i]->s.owner, owner) == 0)
            ret_mb[STORED_SANDBOXES] += (int64_t)(t->sorted[i]->s.spec.disk_bytes / MIB);
    build_in_use(core, owner, builds);
    ret_mb[STORED_BUILDS] = builds[QUOTA_DISK_MB];
    ret_mb[STORED_VOLUMES] = volumes_in_use_mb(core, owner);
    stored_add(core, owner, ret_mb);
}

int quota_exceeded(enum quota q, const struct team *team, int64_t used, int64_t asked,
                   struct err *err)
{
    char limit[32], now[32], more[32];
    const struct {
        char *out;
        int64_t v;
    } texts[] = { { limit, team->quotas[q] }, { now, used }, { more, asked } };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        (void)snprintf(texts[i].out, sizeof(limit), q == QUOTA_CPU_MILLIS ? "%g" : "%.0f",
                       (double)texts[i].v / (q == QUOTA_CPU_MILLIS ? 1000 : 1));
    return err_fail(
        err, FAIL_QUOTA_EXCEEDED,
        "team '%s' may use %s of '%s'; %s are in use and %s more were asked for: %s, or "
        "ask the operator",
        team->name, limit, names[q], now, more,
        q == QUOTA_DISK_MB ? "delete sandboxes, volumes, checkpoints or images, or "
                             "`warren image prune` (`warren team get` shows what takes it)"
                           : "stop or delete some");
}

/* Check the operator's bound for the memory limits of all teams together. */
static int check_promise(struct core *core, int64_t before_mb, int64_t after_mb, struct err *err)
{
    int64_t used[QUOTA_COUNT];
    if (!core->memory_promise_mb || after_mb <= before_mb)
        return 0;
    quota_in_use(core, NULL, used);
    int64_t most = (int64_t)core->memory_promise_mb, now = used[QUOTA_MEMORY_MB] - before_mb;
    if (now + after_mb <= most)
        return 0;
    return err_fail(
        err, FAIL_CAPACITY,
        "the memory limits of running sandboxes may add up to %lld MB here; %lld are taken and "
        "%lld were asked for: ask for less, or wait until a sandbox ends",
        (long long)most, (long long)now, (long long)after_mb);
}

bool quota_crowded(struct core *core, const char *owner)
{
    const struct team *team = team_find(core, owner);
    int64_t used[QUOTA_COUNT];
    if (!team || team->quotas[QUOTA_DISK_MB] == QUOTA_NONE)
        return false;
    quota_in_use(core, owner, used);
    return used[QUOTA_DISK_MB] > team->quotas[QUOTA_DISK_MB] && stored_yielding_mb(core, owner) > 0;
}

int quota_check(struct core *core, const char *owner, const int64_t before[QUOTA_COUNT],
                const int64_t after[QUOTA_COUNT], struct err *err)
{
    const struct team *team = team_find(core, owner);
    int64_t used[QUOTA_COUNT];
    bool counted = false, crowded = false;
    if (!team || team->leaving)
        return err_fail(err, FAIL_TEAM_NOT_FOUND, "no team '%s' here", owner);
    for (int q = 0; q < QUOTA_COUNT; q++) {
        if (team->quotas[q] == QUOTA_NONE || after[q] <= before[q])
            continue;
        if (!counted)
            quota_in_use(core, owner, used);
        counted = true;
        int64_t over = used[q] - before[q] + after[q] - team->quotas[q];
        int64_t yields = over > 0 && q == QUOTA_DISK_MB ? stored_yielding_mb(core, owner) : 0;
        if (over > yields)
            return quota_exceeded((enum quota)q, team, used[q] - yields, after[q] - before[q], err);
        crowded |= over > 0;
    }
    int r = check_promise(core, before[QUOTA_MEMORY_MB], after[QUOTA_MEMORY_MB], err);
    if (r >= 0 && crowded)
        ledger_make_room(core);
    return r;
}
