#include "core/room.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/images.h"
#include "core/ledger.h"
#include "core/quota.h"
#include "core/wait.h"

#define MIB (1024ull * 1024)
#define WAIT_MS (3600ll * 1000) /* as long as unpacking a layer may take */

static uint64_t whole_mib(uint64_t bytes)
{
    return (bytes + MIB - 1) / MIB * MIB;
}

/* ---- with the table's lock held ---- */

static struct stock *stock_of(struct core *core, const char *owner, bool make)
{
    struct rooms *rs = &core->rooms;
    for (size_t i = 0; i < rs->n_stocks; i++)
        if (strcmp(rs->stocks[i].owner, owner) == 0)
            return &rs->stocks[i];
    struct stock *stocks =
        make ? reallocarray(rs->stocks, rs->n_stocks + 1, sizeof(*stocks)) : NULL;
    if (!stocks)
        return NULL;
    rs->stocks = stocks;
    struct stock *s = &stocks[rs->n_stocks++];
    *s = (struct stock){ .owner = "" };
    (void)snprintf(s->owner, sizeof(s->owner), "%s", owner);
    return s;
}

/* Cached until the images change, because every create asks for it. */
static uint64_t images_of(struct core *core, const char *owner)
{
    struct images *im = &core->images;
    struct stock *s = stock_of(core, owner, true);
    (void)pthread_mutex_lock(&im->lock);
    bool known = s && s->seen == im->changes && s->seen;
    uint64_t bytes = known ? s->images : images_bytes(im, owner);
    if (s && !known) {
        s->images = bytes;
        s->seen = im->changes;
    }
    (void)pthread_mutex_unlock(&im->lock);
    return bytes;
}

void stored_add(struct core *core, const char *owner, int64_t mb[STORED_COUNT])
{
    const struct stock *s = stock_of(core, owner, false);
    uint64_t coming = s ? s->left : 0;
    for (const struct room *r = core->rooms.first; r; r = r->next)
        if (strcmp(r->owner, owner) == 0)
            coming += r->held;
    mb[STORED_ACCOUNTS] += (int64_t)(whole_mib(s ? s->accounts : 0) / MIB);
    mb[STORED_UPLOADS] += (int64_t)(whole_mib(s ? s->uploads : 0) / MIB);
    mb[STORED_IMAGES] += (int64_t)(whole_mib(images_of(core, owner)) / MIB);
    mb[STORED_COMING] += (int64_t)(whole_mib(coming) / MIB);
    mb[STORED_CHECKPOINTS] += (int64_t)(whole_mib(checkpoints_bytes(core, owner)) / MIB);
}

int64_t stored_yielding_mb(struct core *core, const char *owner)
{
    const struct stock *s = stock_of(core, owner, false);
    const struct table *t = &core->table;
    uint64_t all = s ? s->accounts : 0, present = 0;
    for (size_t i = 0; all && i < t->n; i++)
        if (strcmp(t->sorted[i]->s.owner, owner) == 0)
            present += t->sorted[i]->account_bytes;
    return present < all ? (int64_t)((whole_mib(all) - whole_mib(present)) / MIB) : 0;
}

void stored_change_accounts(struct core *core, const char *owner, int64_t more_bytes)
{
    struct stock *s = stock_of(core, owner, true);
    if (s)
        s->accounts += (uint64_t)more_bytes;
}

/* The bytes that the team's other rooms hold (without names), or were lent. */
static uint64_t others(const struct room *room, bool lent)
{
    uint64_t n = 0;
    for (const struct room *r = room->core->rooms.first; r; r = r->next)
        if (r != room && strcmp(r->owner, room->owner) == 0)
            n += lent ? r->lent : r->naming ? 0 : r->held;
    return n;
}

static const struct team *limited(const struct room *room)
{
    const struct team *team = team_find(room->core, room->owner);
    return team && team->quotas[QUOTA_DISK_MB] != QUOTA_NONE ? team : NULL;
}

static int64_t used_mb(const struct room *room)
{
    int64_t used[QUOTA_COUNT];
    quota_in_use(room->core, room->owner, used);
    return used[QUOTA_DISK_MB] - stored_yielding_mb(room->core, room->owner);
}

/* Wait until more_mb fits. Subtract credit_mb from what is in use: those bytes are counted
 * twice. */
static int wait_for(const struct room *room, int64_t more_mb, int64_t credit_mb, struct err *err)
{
    struct core *core = room->core;
    int64_t until = clock_mono_ms() + WAIT_MS;
    for (;;) {
        const struct team *team = limited(room);
        if (!team)
            return 0;
        int64_t used = used_mb(room) - credit_mb, lent = (int64_t)(others(room, true) / MIB);
        if (used + lent + more_mb <= team->quotas[QUOTA_DISK_MB])
            return 0;
        if (used + more_mb > team->quotas[QUOTA_DISK_MB] || clock_mono_ms() >= until ||
            atomic_load(&core->stopping))
            return quota_exceeded(QUOTA_DISK_MB, team, used, more_mb, err);
        (void)wait_until(&core->rooms.settled, &core->table.lock, until);
    }
}

static int take(struct room *room, uint64_t n, struct err *err)
{
    uint64_t more = room->used + n > room->held ? whole_mib(room->used + n - room->held) : 0;
    int r = more ? wait_for(room, (int64_t)(more / MIB), 0, err) : 0;
    if (r < 0)
        return r;
    room->held += more;
    room->used += n;
    if (more && quota_crowded(room->core, room->owner))
        ledger_make_room(room->core);
    return 0;
}

/* ---- public ---- */

void room_open(struct core *core, const char *owner, struct room *room)
{
    *room = (struct room){ .core = core };
    (void)snprintf(room->owner, sizeof(room->owner), "%s", owner);
    (void)pthread_mutex_lock(&core->table.lock);
    room->next = core->rooms.first;
    core->rooms.first = room;
    (void)pthread_mutex_unlock(&core->table.lock);
}

void room_close(struct room *room)
{
    struct core *core = room->core;
    if (!core)
        return;
    (void)pthread_mutex_lock(&core->table.lock);
    for (struct room **at = &core->rooms.first; *at; at = &(*at)->next)
        if (*at == room) {
            *at = room->next;
            break;
        }
    (void)pthread_cond_broadcast(&core->rooms.settled);
    (void)pthread_mutex_unlock(&core->table.lock);
    room->core = NULL;
}

bool room_limited(const struct room *room)
{
    (void)pthread_mutex_lock(&room->core->table.lock);
    bool yes = limited(room) != NULL;
    (void)pthread_mutex_unlock(&room->core->table.lock);
    return yes;
}

int room_take(struct room *room, uint64_t n, struct err *err)
{
    (void)pthread_mutex_lock(&room->core->table.lock);
    int r = take(room, n, err);
    (void)pthread_mutex_unlock(&room->core->table.lock);
    return r;
}

int room_take_named(struct room *room, uint64_t n, struct err *err)
{
    (void)pthread_mutex_lock(&room->core->table.lock);
    uint64_t same = others(room, false), more = whole_mib(n);
    int r =
        wait_for(room, (int64_t)(more / MIB), (int64_t)((same < more ? same : more) / MIB), err);
    if (r >= 0)
        room->held += more;
    room->naming = true;
    (void)pthread_mutex_unlock(&room->core->table.lock);
    return r;
}

int room_lend(struct room *room, uint64_t most, uint64_t *ret_n, struct err *err)
{
    (void)pthread_mutex_lock(&room->core->table.lock);
    int r = wait_for(room, 1, 0, err);
    const struct team *team = limited(room);
    uint64_t n = most;
    if (r >= 0 && team) {
        int64_t left =
            team->quotas[QUOTA_DISK_MB] - used_mb(room) - (int64_t)(others(room, true) / MIB);
        n = left > 0 ? (uint64_t)left * MIB : MIB;
        n = most && most < n ? most : n;
        room->lent = n;
    }
    (void)pthread_mutex_unlock(&room->core->table.lock);
    *ret_n = n;
    return r;
}

int room_settle(struct room *room, uint64_t n, struct err *err)
{
    struct core *core = room->core;
    (void)pthread_mutex_lock(&core->table.lock);
    room->lent = 0;
    int r = n ? take(room, n, err) : 0;
    (void)pthread_cond_broadcast(&core->rooms.settled);
    (void)pthread_mutex_unlock(&core->table.lock);
    return r;
}

int room_exceeded(struct room *room, uint64_t n, struct err *err)
{
    (void)pthread_mutex_lock(&room->core->table.lock);
    const struct team *team = limited(room);
    int r = team ? quota_exceeded(QUOTA_DISK_MB, team, used_mb(room), (int64_t)(n / MIB) + 1, err)
                 : -EDQUOT;
    (void)pthread_mutex_unlock(&room->core->table.lock);
    return r;
}

void stored_set_uploads(struct core *core, const char *owner, uint64_t bytes)
{
    (void)pthread_mutex_lock(&core->table.lock);
    struct stock *s = stock_of(core, owner, true);
    if (s)
        s->uploads = bytes;
    (void)pthread_mutex_unlock(&core->table.lock);
}

void stored_add_left(struct core *core, const char *owner, uint64_t bytes)
{
    (void)pthread_mutex_lock(&core->table.lock);
    struct stock *s = stock_of(core, owner, true);
    if (s)
        s->left += bytes;
    (void)pthread_mutex_unlock(&core->table.lock);
}

uint64_t stored_left(struct core *core, const char *owner)
{
    (void)pthread_mutex_lock(&core->table.lock);
    const struct stock *s = stock_of(core, owner, false);
    uint64_t left = s ? s->left : 0;
    (void)pthread_mutex_unlock(&core->table.lock);
    return left;
}

void stored_clear_left(struct core *core)
{
    (void)pthread_mutex_lock(&core->table.lock);
    for (size_t i = 0; i < core->rooms.n_stocks; i++)
        core->rooms.stocks[i].left = 0;
    (void)pthread_mutex_unlock(&core->table.lock);
}
