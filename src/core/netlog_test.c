#include "core/netlog.h"

#include "base/check.h"
#include "base/cleanup.h"

static size_t copied(const struct netlog *l, uint64_t after, uint64_t *ret_first)
{
    _cleanup_free_ struct network_entry *items = NULL;
    size_t n = 0;
    CHECK_OK(netlog_copy(l, after, &items, &n));
    *ret_first = n ? items[0].number : 0;
    for (size_t i = 0; i < n; i++) {
        CHECK_EQ(items[i].number, *ret_first + i);
        CHECK_EQ(items[i].record.port, (items[0].number + i) % 60000);
    }
    return n;
}

TEST(the_latest_entries_are_kept_in_order)
{
    _cleanup_(netlog_done) struct netlog l = { 0 };
    uint64_t first;
    CHECK_EQ(copied(&l, 0, &first), 0);
    for (uint64_t i = 1; i <= 20; i++)
        netlog_add(&l, &(struct broker_record){ .port = (uint32_t)i });
    CHECK_EQ(copied(&l, 0, &first), 20);
    CHECK_EQ(first, 1);
    CHECK_EQ(copied(&l, 15, &first), 5);
    CHECK_EQ(first, 16);
    CHECK_EQ(copied(&l, 20, &first), 0);
    CHECK_EQ(copied(&l, 9999, &first), 0);
    for (uint64_t i = 21; i <= 1000; i++)
        netlog_add(&l, &(struct broker_record){ .port = (uint32_t)i });
    CHECK_EQ(copied(&l, 0, &first), NETWORK_LOG_MAX);
    CHECK_EQ(first, 1000 - NETWORK_LOG_MAX + 1);
}
