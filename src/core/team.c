#include "core/team.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/checkpoints.h"
#include "core/event.h"
#include "core/ledger.h"
#include "core/quota.h"

#define LOG_MODULE "team"
#define TEAMS_MAX 10000 /* each request looks its own up among them */

/* ---- with the table's lock held ---- */

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct team *)a)->name, ((const struct team *)b)->name);
}

static int put(struct core *core, const struct team *team)
{
    struct teams *t = &core->teams;
    struct team *items = reallocarray(t->items, t->n + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    t->items = items;
    t->items[t->n++] = *team;
    qsort(t->items, t->n, sizeof(*t->items), compare);
    return 0;
}

static void drop(struct core *core, const char *name)
{
    struct teams *t = &core->teams;
    struct team *at = team_find(core, name);
    if (!at)
        return;
    size_t i = (size_t)(at - t->items);
    memmove(at, at + 1, (t->n - i - 1) * sizeof(*at));
    t->n--;
}

/* ---- loading ---- */

static int load_row(void *ctx, const struct store_team *row)
{
    struct team team = { .created_ms = row->created_ms,
                         .quotas = { row->sandboxes, row->cpu_millis, row->memory_mb,
                                     row->disk_mb } };
    if (!name_valid(row->name))
        return 0;
    (void)snprintf(team.name, sizeof(team.name), "%s", row->name);
    return put(ctx, &team);
}

static int save(struct core *core, const struct team *team, struct err *err)
{
    struct store_team row = { .name = team->name,
                              .created_ms = team->created_ms,
                              .sandboxes = team->quotas[QUOTA_SANDBOXES],
                              .cpu_millis = team->quotas[QUOTA_CPU_MILLIS],
                              .memory_mb = team->quotas[QUOTA_MEMORY_MB],
                              .disk_mb = team->quotas[QUOTA_DISK_MB] };
    return store_team_put(core->store, &row, err);
}

int teams_load(struct core *core, struct err *err)
{
    int r = store_team_each(core->store, load_row, core, err);
    if (r == -ENOMEM)
        return err_set(err, ENOMEM, "cannot allocate the teams");
    if (r < 0 || team_find(core, OWNER_DEFAULT))
        return r;
    struct team team = { .name = OWNER_DEFAULT, .created_ms = clock_now_ms() };
    for (int q = 0; q < QUOTA_COUNT; q++)
        team.quotas[q] = QUOTA_NONE;
    r = save(core, &team, err);
    if (r >= 0 && put(core, &team) < 0)
        r = err_set(err, ENOMEM, "cannot allocate the teams");
    return r;
}

void teams_done(struct teams *t)
{
    free(t->items);
    t->items = NULL;
    t->n = 0;
}

/* ---- public ---- */

static int not_found(struct err *err, const char *name)
{
    return err_fail(err, FAIL_TEAM_NOT_FOUND,
                    "no team '%.64s' here; `warren team ls` shows what there is", name);
}

static void tell(struct core *core, const char *type, const char *name)
{
    char data[OWNER_MAX + 16];
    int n = snprintf(data, sizeof(data), "{\"name\":\"%s\"}", name);
    event_emit(core, OWNER_DEFAULT, NULL, type, n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
    log_info("%s team=%s", type, name);
}

int team_create(struct core *core, const char *name, const int64_t quotas[QUOTA_COUNT],
                struct team *ret_team, struct err *err)
{
    if (!name_valid(name))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'name' must be at most %d letters, digits, '.', '_' or '-', a letter or "
                        "digit first",
                        NAME_MAX_LEN);
    struct team team = { .created_ms = clock_now_ms(), .leaving = true };
    (void)snprintf(team.name, sizeof(team.name), "%s", name);
    memcpy(team.quotas, quotas, sizeof(team.quotas));
    (void)pthread_mutex_lock(&core->table.lock);
    int r = team_find(core, name)        ? -EEXIST
            : core->teams.n >= TEAMS_MAX ? -ENOSPC
                                         : put(core, &team); /* nobody's until it is saved */
    (void)pthread_mutex_unlock(&core->table.lock);
    if (r == -EEXIST)
        return err_fail(err, FAIL_NAME_TAKEN, "there is a team '%s' already", name);
    if (r == -ENOSPC)
        return err_fail(err, FAIL_CAPACITY, "there are %d teams, which is as many as can be",
                        TEAMS_MAX);
    if (r < 0)
        return err_set(err, -r, "cannot allocate a team");
    r = save(core, &team, err);
    (void)pthread_mutex_lock(&core->table.lock);
    struct team *at = team_find(core, name);
    if (r < 0)
        drop(core, name);
    else if (at)
        at->leaving = false;
    (void)pthread_mutex_unlock(&core->table.lock);
    if (r < 0)
        return r;
    *ret_team = team;
    tell(core, "team.added", name);
    return 0;
}

int team_get(struct core *core, const char *name, struct team *ret_team, struct err *err)
{
    (void)pthread_mutex_lock(&core->table.lock);
    const struct team *found = team_find(core, name);
    bool there = found && !found->leaving;
    if (there) {
        *ret_team = *found;
        quota_in_use(core, name, ret_team->in_use);
        quota_disk(core, name, ret_team->disk_mb);
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    return there ? 0 : not_found(err, name);
}

bool team_exists(struct core *core, const char *name)
{
    (void)pthread_mutex_lock(&core->table.lock);
    const struct team *found = team_find(core, name);
    bool there = found && !found->leaving;
    (void)pthread_mutex_unlock(&core->table.lock);
    return there;
}

int team_list(struct core *core, struct team **ret_teams, size_t *ret_n, struct err *err)
{
    struct teams *t = &core->teams;
    size_t n = 0;
    (void)pthread_mutex_lock(&core->table.lock);
    struct team *teams = calloc(t->n + 1, sizeof(*teams));
    for (size_t i = 0; teams && i < t->n; i++)
        if (!t->items[i].leaving)
            teams[n++] = t->items[i];
    (void)pthread_mutex_unlock(&core->table.lock);
    if (!teams)
        return err_set(err, ENOMEM, "cannot allocate the teams");
    *ret_teams = teams;
    *ret_n = n;
    return 0;
}

int team_update(struct core *core, const char *name, unsigned which,
                const int64_t quotas[QUOTA_COUNT], struct team *ret_team, struct err *err)
{
    struct team team, old;
    int r = team_get(core, name, &team, err);
    if (r < 0)
        return r;
    old = team;
    for (int q = 0; q < QUOTA_COUNT; q++)
        if (which & 1u << q)
            team.quotas[q] = quotas[q];
    r = save(core, &team, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&core->table.lock);
    struct team *at = team_find(core, name);
    bool gone = !at || at->leaving;
    for (int q = 0; !gone && q < QUOTA_COUNT; q++)
        if (which & 1u << q)
            at->quotas[q] = team.quotas[q];
    (void)pthread_mutex_unlock(&core->table.lock);
    if (gone) { /* removed meanwhile: leave no row behind */
        (void)store_team_remove(core->store, old.name, NULL);
        return not_found(err, name);
    }
    *ret_team = team;
    return 0;
}

/* From here on nobody may add to it; false: it has something, which the next of that name would find. */
static bool leave(struct core *core, const char *name, bool *ret_known)
{
    const struct table *t = &core->table;
    const struct checkpoints *cs = &core->checkpoints;
    bool empty = true;
    (void)pthread_mutex_lock(&core->table.lock);
    struct team *at = team_find(core, name);
    *ret_known = at && !at->leaving;
    for (size_t i = 0; *ret_known && i < t->n && empty; i++)
        empty = strcmp(t->sorted[i]->s.owner, name) != 0;
    for (size_t i = 0; *ret_known && i < cs->n && empty; i++)
        empty = strcmp(cs->items[i].owner, name) != 0 ||
                checkpoint_of_template(&cs->items[i]); /* it goes with its template */
    empty = empty && !(*ret_known && volumes_any(core, name));
    if (*ret_known && empty)
        at->leaving = true;
    (void)pthread_mutex_unlock(&core->table.lock);
    return empty;
}

static bool has_images(struct core *core, const char *name)
{
    _cleanup_free_ struct image *images = NULL;
    size_t n = 0;
    bool own = false;
    if (image_list(core, name, NULL, &images, &n, NULL) < 0)
        return true; /* not known to have none */
    for (size_t i = 0; i < n && !own; i++)
        own = strcmp(images[i].owner, name) == 0;
    return own;
}

int team_remove(struct core *core, const char *name, struct err *err)
{
    if (strcmp(name, OWNER_DEFAULT) == 0)
        return err_fail(err, FAIL_FORBIDDEN, "the team '%s' stays", OWNER_DEFAULT);
    bool known;
    if (team_exists(core, name) && has_images(core, name))
        return err_fail(err, FAIL_TEAM_NOT_EMPTY, "team '%s' has images; delete them first", name);
    bool empty = leave(core, name, &known);
    if (!known)
        return not_found(err, name);
    if (!empty)
        return err_fail(err, FAIL_TEAM_NOT_EMPTY,
                        "team '%s' has sandboxes, volumes or checkpoints; delete them first", name);
    keyring_drop(core, name);
    template_builds_drop(core, name);
    templates_drop(core, name);
    uploads_drop(core, name);
    secrets_drop(core, name);
    aliases_drop(core, name);
    int r = store_team_remove(core->store, name, err);
    (void)pthread_mutex_lock(&core->table.lock);
    drop(core, name); /* its keys are refused already; a row that stayed comes back at a start */
    (void)pthread_mutex_unlock(&core->table.lock);
    ledger_make_room(core); /* what its sandboxes' networks left goes, too */
    if (r >= 0)
        tell(core, "team.removed", name);
    return r;
}
