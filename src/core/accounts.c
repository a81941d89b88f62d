/* The directory of accounts: read once at the start, counted for quotas, and rid of what is old. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "core/ledger.h"
#include "core/quota.h"
#include "core/table.h"

#define LOG_MODULE "network"
#define KEEP_MS (7 * 24 * 3600 * 1000ll) /* after the end of its sandbox */
#define GONE_MAX 5000                    /* accounts of a team's sandboxes that are gone */

uint64_t accounts_bytes(const struct core *core, const char *sandbox)
{
    struct stat st;
    if (fstatat(core->ledger.dir, sandbox, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    return (uint64_t)st.st_blocks * 512; /* the file has holes */
}

/* With the table's lock held. */
static void count(struct core *core, const char *sandbox, const char *owner, uint64_t before,
                  uint64_t after)
{
    struct box *b = box_find(&core->table, NULL, sandbox);
    if (b)
        b->account_bytes = after;
    stored_change_accounts(core, owner, (int64_t)(after - before));
}

void accounts_changed(struct core *core, const char *sandbox, const char *owner, uint64_t before,
                      uint64_t after)
{
    (void)pthread_mutex_lock(&core->table.lock);
    count(core, sandbox, owner, before, after);
    bool crowded = after > before && quota_crowded(core, owner);
    (void)pthread_mutex_unlock(&core->table.lock);
    if (crowded)
        ledger_make_room(core);
}

/* What it carried before this daemon, for the meters, and what it takes, for the quota. */
static void load_one(struct core *core, const char *name)
{
    struct account a;
    if (account_open(&a, core->ledger.dir, name, NULL) < 0)
        return;
    (void)pthread_mutex_lock(&core->table.lock);
    count(core, name, a.head.owner, 0, accounts_bytes(core, name));
    struct box *b = box_find(&core->table, NULL, name);
    uint64_t rx = a.head.egress.received_bytes + a.head.previews.received_bytes;
    uint64_t tx = a.head.egress.sent_bytes + a.head.previews.sent_bytes;
    if (b) {
        b->rx_bytes = rx > b->rx_bytes ? rx : b->rx_bytes;
        b->tx_bytes = tx > b->tx_bytes ? tx : b->tx_bytes;
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    (void)account_close(&a);
}

static DIR *list(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0)
        (void)close(fd);
    return d;
}

int ledger_open(struct core *core, const char *state_dir, struct err *err)
{
    struct ledger *l = &core->ledger;
    _cleanup_fd_ int state = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (state < 0 || (mkdirat(state, "network", 0700) < 0 && errno != EEXIST))
        return err_set(err, errno, "cannot make '%s/network'", state_dir);
    l->dir = openat(state, "network", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = l->dir < 0 ? NULL : list(l->dir);
    if (!d)
        return err_set(err, errno, "cannot open '%s/network'", state_dir);
    for (size_t i = 0; i < core->table.n; i++) { /* should an account be lost */
        struct box *b = core->table.sorted[i];
        b->rx_bytes = b->meter.rx_bytes;
        b->tx_bytes = b->meter.tx_bytes;
    }
    for (const struct dirent *e; (e = readdir(d));)
        if (id_valid(e->d_name))
            load_one(core, e->d_name);
    (void)closedir(d);
    return 0;
}

/* ---- what is old ---- */

struct old {
    char id[ID_SIZE];
    char owner[OWNER_MAX]; /* "": no account, and in no count */
    int64_t changed_ms;
};

static bool is_gone(struct core *core, const char *id)
{
    (void)pthread_mutex_lock(&core->table.lock);
    bool gone = !box_find(&core->table, NULL, id);
    (void)pthread_mutex_unlock(&core->table.lock);
    return gone;
}

/* By team, the latest first. */
static int by_age(const void *va, const void *vb)
{
    const struct old *a = va, *b = vb;
    int order = strcmp(a->owner, b->owner);
    if (order)
        return order;
    return a->changed_ms > b->changed_ms ? -1 : a->changed_ms < b->changed_ms;
}

static size_t find_gone(struct core *core, DIR *d, struct old **ret_items)
{
    struct old *items = NULL;
    size_t n = 0, cap = 0;
    struct stat st;
    for (const struct dirent *e; (e = readdir(d));) {
        if (!id_valid(e->d_name) || !is_gone(core, e->d_name) ||
            fstatat(core->ledger.dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (n == cap) {
            struct old *more = reallocarray(items, cap ? 2 * cap : 64, sizeof(*more));
            if (!more)
                break;
            items = more;
            cap = cap ? 2 * cap : 64;
        }
        struct account a;
        int r = account_open(&a, core->ledger.dir, e->d_name, NULL);
        if (r < 0 && r != -ENOENT)
            continue;
        items[n] = (struct old){ .changed_ms = (int64_t)st.st_mtim.tv_sec * 1000 };
        memcpy(items[n].id, e->d_name, ID_SIZE);
        if (r >= 0)
            memcpy(items[n].owner, a.head.owner, OWNER_MAX);
        (void)account_close(&a);
        n++;
    }
    *ret_items = items;
    return n;
}

static bool is_crowded(struct core *core, const char *owner)
{
    (void)pthread_mutex_lock(&core->table.lock);
    bool crowded = quota_crowded(core, owner);
    (void)pthread_mutex_unlock(&core->table.lock);
    return crowded;
}

static void drop(struct core *core, const struct old *o)
{
    if (!is_gone(core, o->id))
        return;
    (void)pthread_mutex_lock(&core->ledger.io); /* nobody reads it meanwhile */
    uint64_t bytes = accounts_bytes(core, o->id);
    if (unlinkat(core->ledger.dir, o->id, 0) == 0 && o->owner[0])
        accounts_changed(core, o->id, o->owner, bytes, 0);
    (void)pthread_mutex_unlock(&core->ledger.io);
}

void accounts_prune(struct core *core)
{
    _cleanup_free_ struct old *items = NULL;
    DIR *d = list(core->ledger.dir);
    if (!d)
        return;
    size_t n = find_gone(core, d, &items);
    (void)closedir(d);
    if (n)
        qsort(items, n, sizeof(*items), by_age);
    int64_t before = clock_now_ms() - KEEP_MS;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && strcmp(items[end].owner, items[i].owner) == 0;)
            end++;
        bool stays = team_exists(core, items[i].owner);
        for (size_t k = end; k-- > i;) /* the oldest first */
            if (!stays || k - i >= GONE_MAX || items[k].changed_ms < before ||
                is_crowded(core, items[i].owner))
                drop(core, &items[k]);
    }
}
