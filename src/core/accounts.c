/* The directory of accounts: read once at the start, and rid of what is old. */
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
#include "core/table.h"

#define LOG_MODULE "network"
#define KEEP_MS (7 * 24 * 3600 * 1000ll) /* after the end of its sandbox */
#define GONE_MAX 5000                    /* accounts of sandboxes that are gone */

/* What it carried before this daemon, for the meters. */
static void load_one(struct core *core, const char *name)
{
    struct account a;
    struct box *b = box_find(&core->table, NULL, name);
    if (!b || account_open(&a, core->ledger.dir, name, NULL) < 0)
        return;
    uint64_t rx = a.head.egress.received_bytes + a.head.previews.received_bytes;
    uint64_t tx = a.head.egress.sent_bytes + a.head.previews.sent_bytes;
    b->rx_bytes = rx > b->rx_bytes ? rx : b->rx_bytes;
    b->tx_bytes = tx > b->tx_bytes ? tx : b->tx_bytes;
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
    int64_t changed_ms;
};

static bool is_gone(struct core *core, const char *id)
{
    (void)pthread_mutex_lock(&core->table.lock);
    bool gone = !box_find(&core->table, NULL, id);
    (void)pthread_mutex_unlock(&core->table.lock);
    return gone;
}

static int by_age(const void *va, const void *vb)
{
    const struct old *a = va, *b = vb;
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
        memcpy(items[n].id, e->d_name, ID_SIZE);
        items[n++].changed_ms = (int64_t)st.st_mtim.tv_sec * 1000;
    }
    *ret_items = items;
    return n;
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
    for (size_t i = 0; i < n; i++)
        if ((i >= GONE_MAX || items[i].changed_ms < before) && is_gone(core, items[i].id))
            (void)unlinkat(core->ledger.dir, items[i].id, 0);
}
