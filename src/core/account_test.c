#include "core/account.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"

#define ID "aaaaaaaaaaaaaaaaaaaa"

static int dir_fd = -1;

static void fresh(void)
{
    char path[] = "/tmp/warren-account-XXXXXX";
    if (dir_fd >= 0)
        (void)unlinkat(dir_fd, ID, 0);
    else
        dir_fd = open(mkdtemp(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_OK(dir_fd);
}

static void log_many(uint64_t from, uint64_t to)
{
    struct account a;
    uint64_t number;
    CHECK_OK(account_open(&a, dir_fd, ID, "team"));
    for (uint64_t i = from; i <= to; i++) {
        CHECK_OK(account_log(&a, &(struct broker_record){ .port = (uint32_t)i % 60000 }, &number));
        CHECK_EQ(number, i);
    }
    CHECK_OK(account_close(&a));
}

static size_t entries(uint64_t after, size_t limit, uint64_t *ret_first)
{
    _cleanup_free_ struct network_entry *items = NULL;
    struct account a;
    size_t n = 0;
    CHECK_OK(account_open(&a, dir_fd, ID, NULL));
    CHECK_OK(account_entries(&a, after, limit, &items, &n));
    CHECK_OK(account_close(&a));
    *ret_first = n ? items[0].number : 0;
    for (size_t i = 1; i < n; i++)
        CHECK(items[i].number > items[i - 1].number);
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(items[i].record.port, items[i].number % 60000);
    return n;
}

TEST(the_latest_entries_are_kept_in_order)
{
    struct account a;
    uint64_t first;
    fresh();
    CHECK_EQ(account_open(&a, dir_fd, ID, NULL), -ENOENT);
    log_many(1, 20);
    CHECK_EQ(entries(0, 1000, &first), 20);
    CHECK_EQ(first, 1);
    CHECK_EQ(entries(15, 1000, &first), 5);
    CHECK_EQ(first, 16);
    CHECK_EQ(entries(0, 3, &first), 3);
    CHECK_EQ(first, 1);
    CHECK_EQ(entries(20, 1000, &first), 0);
    CHECK_EQ(entries(UINT64_MAX, 1000, &first), 0);
    log_many(21, 2000);
    CHECK_EQ(entries(0, 1000, &first), NETWORK_LOG_MAX);
    CHECK_EQ(first, 2000 - NETWORK_LOG_MAX + 1);
}

TEST(an_entry_can_be_written_again_or_taken_out)
{
    struct broker_record rec = { .port = 2, .open = 1, .sent_bytes = 77 };
    struct account a;
    uint64_t first;
    fresh();
    log_many(1, 5);
    CHECK_OK(account_open(&a, dir_fd, ID, NULL));
    CHECK_OK(account_relog(&a, 2, &rec));
    CHECK_OK(account_unlog(&a, 4));
    CHECK_EQ(account_relog(&a, 6, &rec), -ENOENT);
    CHECK_EQ(account_unlog(&a, 0), -ENOENT);
    CHECK_OK(account_close(&a));
    CHECK_EQ(entries(0, 1000, &first), 4);
}

static struct broker_tally tally(const char *host, uint64_t sent)
{
    struct broker_tally t = { .connections = 1, .sent_bytes = sent };
    (void)snprintf(t.host, sizeof(t.host), "%s", host);
    return t;
}

static const struct account_host *find(const struct account *a, const char *host)
{
    for (size_t i = 0; i < a->head.n_hosts; i++)
        if (strcmp(a->hosts[i].host, host) == 0)
            return &a->hosts[i];
    return NULL;
}

TEST(a_host_that_carried_much_is_not_hidden_by_many_that_did_not)
{
    struct account a;
    char host[64];
    fresh();
    CHECK_OK(account_open(&a, dir_fd, ID, "team"));
    struct broker_tally t = tally("big.example", 1000000);
    CHECK_OK(account_add(&a, &t, 1));
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(host, sizeof(host), "h%d.example", i);
        t = tally(host, 10);
        CHECK_OK(account_add(&a, &t, 2 + i));
        if (i % 500 == 0) { /* and all of it outlives the one who writes */
            CHECK_OK(account_close(&a));
            CHECK_OK(account_open(&a, dir_fd, ID, NULL));
        }
    }
    t = (struct broker_tally){ .preview = 1, .connections = 3, .received_bytes = 9 };
    CHECK_OK(account_add(&a, &t, 9000));
    CHECK_OK(account_close(&a));
    CHECK_OK(account_open(&a, dir_fd, ID, NULL));
    CHECK_OK(account_hosts(&a));
    CHECK_EQ(a.head.n_hosts, ACCOUNT_HOSTS_MAX);
    CHECK(find(&a, "big.example") != NULL);
    CHECK_EQ(find(&a, "big.example")->sum.sent_bytes, 1000000);
    CHECK(find(&a, "h4999.example") != NULL);
    CHECK_EQ(a.head.egress.sent_bytes, 1000000 + 5000 * 10);
    CHECK_EQ(a.head.others.connections, 5001 - ACCOUNT_HOSTS_MAX);
    CHECK_EQ(a.head.previews.received_bytes, 9);
    CHECK_STR(a.head.owner, "team");
    CHECK_OK(account_close(&a));
}

static void use(const char *secret, const char *host, int64_t now_ms)
{
    struct account a;
    struct broker_tally t = tally(host, 0);
    (void)snprintf(t.binding, sizeof(t.binding), "%s", secret);
    CHECK_OK(account_open(&a, dir_fd, ID, "team"));
    CHECK_OK(account_add_use(&a, &t, now_ms));
    CHECK_OK(account_close(&a));
}

TEST(secrets_that_were_used_are_remembered_however_much_is_logged)
{
    _cleanup_free_ struct account_use *items = NULL, *more = NULL;
    struct account a;
    char host[64];
    size_t n = 0;
    fresh();
    use("key", "a.example", 10);
    log_many(1, 2 * NETWORK_LOG_MAX);
    use("key", "b.example", 20);
    use("key", "a.example", 30);
    CHECK_OK(account_open(&a, dir_fd, ID, NULL));
    CHECK_OK(account_uses(&a, &items, &n));
    CHECK_EQ(n, 2);
    CHECK_STR(items[0].host, "a.example");
    CHECK_EQ(items[0].count, 2);
    CHECK_EQ(items[0].first_ms, 10);
    CHECK_EQ(items[0].last_ms, 30);
    CHECK_EQ(a.head.egress.connections, 0);
    CHECK_OK(account_close(&a));
    for (int i = 0; i < ACCOUNT_USES_MAX; i++) {
        (void)snprintf(host, sizeof(host), "h%d.example", i);
        use("key", host, 40 + i);
    }
    CHECK_OK(account_open(&a, dir_fd, ID, NULL));
    CHECK_OK(account_uses(&a, &more, &n));
    CHECK_EQ(n, ACCOUNT_USES_MAX);
    CHECK_STR(more[1].host, "h126.example"); /* in the place of the one that was used longest ago */
    CHECK_STR(more[0].host, "h127.example");
    CHECK_OK(account_close(&a));
}

TEST(what_is_torn_or_of_another_shape_costs_entries_and_no_sums)
{
    struct account a;
    uint64_t first;
    fresh();
    log_many(1, 5);
    CHECK_OK(account_open(&a, dir_fd, ID, NULL));
    struct broker_tally t = tally("one.example", 5);
    CHECK_OK(account_add(&a, &t, 1));
    a.head.entry_size = 12;
    a.head.n_hosts = 4000000;
    free(a.hosts);
    a.hosts = NULL; /* not to be written */
    CHECK_OK(account_close(&a));
    CHECK_EQ(entries(0, 1000, &first), 0);
    CHECK_OK(account_open(&a, dir_fd, ID, NULL));
    CHECK_OK(account_hosts(&a));
    CHECK_EQ(a.head.n_hosts, 0);
    CHECK_EQ(a.head.egress.sent_bytes, 5);
    CHECK_EQ(a.head.count, 5);
    CHECK_OK(account_close(&a));
    _cleanup_fd_ int fd = openat(dir_fd, ID, O_WRONLY | O_TRUNC | O_CLOEXEC);
    CHECK_EQ(write(fd, "warr", 4), 4);
    CHECK_EQ(account_open(&a, dir_fd, ID, NULL), -ENOENT);
    CHECK_EQ(account_open(&a, dir_fd, "../passwd", "team"), -ENOENT);
}
