#include "core/account.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/id.h"

#define MAGIC "warrnet1"
#define HEAD_BYTES 1024 /* of the file: the head may grow at its end */
#define HOSTS_AT HEAD_BYTES
#define ENTRIES_AT (HOSTS_AT + ACCOUNT_HOSTS_MAX * sizeof(struct account_host))

#define USES_AT ((size_t)1024 * 1024) /* behind a hole */

_Static_assert(ENTRIES_AT + NETWORK_LOG_MAX * sizeof(struct network_entry) <= USES_AT,
               "the uses have theirs");
_Static_assert(USES_AT + ACCOUNT_USES_MAX * sizeof(struct account_use) <= ACCOUNT_BYTES_MAX,
               "what a sandbox's network leaves on disk is bounded");
_Static_assert(sizeof(struct account_head) <= HEAD_BYTES, "the head has its place");

/* ---- the file ---- */

static int read_at(int fd, void *p, size_t n, size_t at)
{
    ssize_t got = pread(fd, p, n, (off_t)at);
    return got < 0 ? -errno : (size_t)got == n ? 0 : -ENODATA;
}

static int write_at(int fd, const void *p, size_t n, size_t at)
{
    ssize_t put = pwrite(fd, p, n, (off_t)at);
    return put < 0 ? -errno : (size_t)put == n ? 0 : -EIO;
}

static off_t entry_at(uint64_t number)
{
    return (off_t)(ENTRIES_AT + number % NETWORK_LOG_MAX * sizeof(struct network_entry));
}

static void begin(struct account *a, const char *sandbox, const char *owner)
{
    a->head = (struct account_head){ .host_size = sizeof(struct account_host),
                                     .entry_size = sizeof(struct network_entry),
                                     .first = 1,
                                     .begun_ms = clock_now_ms() };
    memcpy(a->head.magic, MAGIC, sizeof(a->head.magic));
    (void)snprintf(a->head.sandbox, sizeof(a->head.sandbox), "%s", sandbox);
    (void)snprintf(a->head.owner, sizeof(a->head.owner), "%s", owner);
    a->head_changed = true;
}

/* Entries and hosts of another shape than ours are as good as lost. */
static void reconcile(struct account *a)
{
    struct account_head *h = &a->head;
    if (h->entry_size != sizeof(struct network_entry) || h->first > h->count + 1)
        h->first = h->count + 1;
    if (h->host_size != sizeof(struct account_host) || h->n_hosts > ACCOUNT_HOSTS_MAX)
        h->n_hosts = 0;
    if (h->n_uses > ACCOUNT_USES_MAX)
        h->n_uses = 0;
    h->entry_size = sizeof(struct network_entry);
    h->host_size = sizeof(struct account_host);
    h->owner[sizeof(h->owner) - 1] = '\0';
}

int account_open(struct account *a, int dir_fd, const char *sandbox, const char *owner)
{
    *a = (struct account)ACCOUNT_INIT;
    if (!id_valid(sandbox)) /* it is a file's name */
        return -ENOENT;
    a->fd = openat(dir_fd, sandbox, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (owner ? O_CREAT : 0), 0600);
    if (a->fd < 0)
        return -errno;
    int r = read_at(a->fd, &a->head, sizeof(a->head), 0);
    bool ours = r == 0 && memcmp(a->head.magic, MAGIC, sizeof(a->head.magic)) == 0;
    if (ours) {
        reconcile(a);
        return 0;
    }
    if (owner) {
        begin(a, sandbox, owner);
        return 0;
    }
    (void)close(a->fd);
    a->fd = -1;
    return r < 0 && r != -ENODATA ? r : -ENOENT;
}

int account_close(struct account *a)
{
    int r = 0;
    if (a->fd < 0)
        return 0;
    for (size_t i = 0; a->hosts && i < a->head.n_hosts; i++)
        if (a->changed[i] && r >= 0)
            r = write_at(a->fd, &a->hosts[i], sizeof(a->hosts[i]),
                         HOSTS_AT + i * sizeof(a->hosts[i]));
    if (a->head_changed && r >= 0)
        r = write_at(a->fd, &a->head, sizeof(a->head), 0);
    (void)close(a->fd);
    free(a->hosts);
    *a = (struct account)ACCOUNT_INIT;
    return r;
}

/* ---- entries ---- */

static bool is_kept(const struct account *a, uint64_t number)
{
    return number >= a->head.first && number <= a->head.count &&
           number + NETWORK_LOG_MAX > a->head.count;
}

static int put_entry(struct account *a, uint64_t number, const struct broker_record *rec)
{
    struct network_entry e;
    memset(&e, 0, sizeof(e)); /* holes too: it goes to a file */
    e.number = number;
    e.record = *rec;
    return write_at(a->fd, &e, sizeof(e), (size_t)entry_at(number));
}

int account_log(struct account *a, const struct broker_record *rec, uint64_t *ret_number)
{
    int r = put_entry(a, a->head.count + 1, rec);
    if (r < 0)
        return r;
    *ret_number = ++a->head.count;
    a->head_changed = true;
    return 0;
}

int account_relog(struct account *a, uint64_t number, const struct broker_record *rec)
{
    return is_kept(a, number) ? put_entry(a, number, rec) : -ENOENT;
}

int account_unlog(struct account *a, uint64_t number)
{
    static const struct network_entry none;
    if (!is_kept(a, number))
        return -ENOENT;
    return write_at(a->fd, &none, sizeof(none), (size_t)entry_at(number));
}

static void end_texts(struct broker_record *rec)
{
    rec->sandbox[sizeof(rec->sandbox) - 1] = '\0';
    rec->address[sizeof(rec->address) - 1] = '\0';
    rec->name[sizeof(rec->name) - 1] = '\0';
    rec->rule[sizeof(rec->rule) - 1] = '\0';
    rec->program[sizeof(rec->program) - 1] = '\0';
    rec->binding[sizeof(rec->binding) - 1] = '\0';
}

int account_entries(struct account *a, uint64_t after, size_t limit,
                    struct network_entry **ret_items, size_t *ret_n)
{
    uint64_t count = a->head.count;
    uint64_t oldest = count > NETWORK_LOG_MAX ? count - NETWORK_LOG_MAX + 1 : 1;
    uint64_t from = oldest > a->head.first ? oldest : a->head.first;
    size_t n = 0;
    if (after >= from)
        from = after + 1;
    size_t most = from <= count && after < count ? (size_t)(count - from + 1) : 0;
    struct network_entry *items = calloc((most < limit ? most : limit) + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    for (uint64_t number = from; most && number <= count && n < limit; number++)
        if (read_at(a->fd, &items[n], sizeof(items[n]), (size_t)entry_at(number)) == 0 &&
            items[n].number == number)
            end_texts(&items[n++].record);
    *ret_items = items;
    *ret_n = n;
    return 0;
}

/* ---- sums ---- */

static void add(struct account_sum *to, const struct account_sum *more)
{
    to->sent_bytes += more->sent_bytes;
    to->received_bytes += more->received_bytes;
    to->connections += more->connections;
    to->denied += more->denied;
}

int account_hosts(struct account *a)
{
    if (a->hosts)
        return 0;
    a->hosts = calloc(ACCOUNT_HOSTS_MAX, sizeof(*a->hosts));
    if (!a->hosts)
        return -ENOMEM;
    if (a->head.n_hosts &&
        read_at(a->fd, a->hosts, a->head.n_hosts * sizeof(*a->hosts), HOSTS_AT) < 0)
        a->head.n_hosts = 0;
    for (size_t i = 0; i < a->head.n_hosts; i++)
        a->hosts[i].host[BROKER_HOST_SIZE - 1] = '\0';
    return 0;
}

static uint64_t weight(const struct account_host *h)
{
    return h->sum.sent_bytes + h->sum.received_bytes;
}

/* A place for another host: an empty one, or that of the lightest, which goes on among the others. So
 * a host that carried much is never hidden by many that carried nothing. */
static struct account_host *make_room(struct account *a)
{
    if (a->head.n_hosts < ACCOUNT_HOSTS_MAX)
        return &a->hosts[a->head.n_hosts++];
    struct account_host *least = &a->hosts[0];
    for (size_t i = 1; i < ACCOUNT_HOSTS_MAX; i++)
        if (weight(&a->hosts[i]) < weight(least) ||
            (weight(&a->hosts[i]) == weight(least) && a->hosts[i].last_ms < least->last_ms))
            least = &a->hosts[i];
    add(&a->head.others, &least->sum);
    return least;
}

static struct account_host *find_host(struct account *a, const char *host, int64_t now_ms)
{
    for (size_t i = 0; i < a->head.n_hosts; i++)
        if (strcmp(a->hosts[i].host, host) == 0)
            return &a->hosts[i];
    struct account_host *h = make_room(a);
    memset(h, 0, sizeof(*h));
    (void)snprintf(h->host, sizeof(h->host), "%s", host);
    h->first_ms = now_ms;
    return h;
}

int account_add(struct account *a, const struct broker_tally *tally, int64_t now_ms)
{
    struct account_sum more = { .sent_bytes = tally->sent_bytes,
                                .received_bytes = tally->received_bytes,
                                .connections = tally->connections,
                                .denied = tally->denied };
    a->head_changed = true;
    add(tally->preview ? &a->head.previews : &a->head.egress, &more);
    if (tally->preview)
        return 0;
    int r = tally->host[0] ? account_hosts(a) : -ENOENT;
    if (r < 0) {
        add(&a->head.others, &more);
        return r == -ENOENT ? 0 : r;
    }
    struct account_host *h = find_host(a, tally->host, now_ms);
    add(&h->sum, &more);
    h->last_ms = now_ms;
    a->changed[h - a->hosts] = true;
    return 0;
}

/* ---- uses ---- */

int account_uses(const struct account *a, struct account_use **ret_items, size_t *ret_n)
{
    size_t n = a->fd < 0 ? 0 : a->head.n_uses;
    struct account_use *items = calloc(n + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    if (n && read_at(a->fd, items, n * sizeof(*items), USES_AT) < 0)
        n = 0;
    for (size_t i = 0; i < n; i++)
        items[i].secret[BROKER_BINDING_SIZE - 1] = items[i].host[BROKER_HOST_SIZE - 1] = '\0';
    *ret_items = items;
    *ret_n = n;
    return 0;
}

/* Its place among n, perhaps one behind them. */
static size_t find_use(const struct account_use *items, size_t n, const struct broker_tally *tally)
{
    size_t oldest = 0;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(items[i].secret, tally->binding) == 0 && strcmp(items[i].host, tally->host) == 0)
            return i;
        if (items[i].last_ms < items[oldest].last_ms)
            oldest = i;
    }
    return n < ACCOUNT_USES_MAX ? n : oldest;
}

int account_add_use(struct account *a, const struct broker_tally *tally, int64_t now_ms)
{
    _cleanup_free_ struct account_use *items = NULL;
    size_t n = 0;
    int r = account_uses(a, &items, &n);
    if (r < 0)
        return r;
    size_t at = find_use(items, n, tally);
    struct account_use use = { .first_ms = now_ms };
    if (at < n && strcmp(items[at].secret, tally->binding) == 0 &&
        strcmp(items[at].host, tally->host) == 0)
        use = items[at];
    (void)snprintf(use.secret, sizeof(use.secret), "%s", tally->binding);
    (void)snprintf(use.host, sizeof(use.host), "%s", tally->host);
    use.count += tally->connections;
    use.last_ms = now_ms;
    a->head.n_uses = (uint32_t)(at == n ? n + 1 : n);
    a->head_changed = true;
    return write_at(a->fd, &use, sizeof(use), USES_AT + at * sizeof(use));
}
