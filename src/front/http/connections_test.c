#include "front/http/connections.h"

#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include "base/check.h"

static struct seat *cut_one;

static void cut(struct seat *s)
{
    cut_one = s;
}

static struct connections *table(unsigned total, unsigned per_address, unsigned per_key,
                                 unsigned strangers)
{
    const struct connections_limits limits = { total, per_address, per_key, strangers };
    struct connections *c = NULL;
    CHECK_OK(connections_new(&limits, cut, &c, NULL));
    cut_one = NULL;
    return c;
}

static int enter(struct connections *c, struct seat *s, const char *address, struct seat **victim)
{
    struct sockaddr_storage sa = { 0 };
    struct sockaddr_in *v4 = (void *)&sa;
    struct sockaddr_in6 *v6 = (void *)&sa;
    if (inet_pton(AF_INET, address, &v4->sin_addr) == 1)
        sa.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, address, &v6->sin6_addr) == 1)
        sa.ss_family = AF_INET6;
    else
        sa.ss_family = AF_UNIX;
    *s = (struct seat){ 0 };
    return connections_enter(c, s, (struct sockaddr *)&sa, victim);
}

static void leave_all(struct connections *c, struct seat *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        connections_leave(c, &s[i]);
    connections_free(c);
}

TEST(who_waits_for_longest_without_a_key_gives_the_seat_up)
{
    struct connections *c = table(3, 3, 3, 3);
    struct seat s[5], *victim;
    for (size_t i = 0; i < 3; i++) {
        CHECK_OK(enter(c, &s[i], "10.0.0.1", &victim));
        CHECK(victim == NULL);
    }
    CHECK_OK(connections_work(c, &s[0], connections_who(c, "key")));
    connections_rest(c, &s[0]);
    for (size_t i = 0; i < 3; i++)
        connections_wait(c, &s[i]);
    CHECK_OK(enter(c, &s[3], "10.0.0.2", &victim));
    CHECK(victim == &s[1]); /* the first has a key */
    connections_leave(c, victim);
    CHECK_OK(enter(c, &s[4], "10.0.0.2", &victim));
    CHECK(victim == &s[2]);
    connections_leave(c, victim);
    CHECK_EQ(enter(c, &s[1], "10.0.0.3", &victim), -EAGAIN); /* nobody waits */
    leave_all(c, s, 5);
}

TEST(an_address_has_its_share_and_ipv6_hosts_share_a_64)
{
    struct connections *c = table(100, 2, 100, 100);
    struct seat s[8], *victim;
    CHECK_OK(enter(c, &s[0], "10.0.0.1", &victim));
    CHECK_OK(enter(c, &s[1], "::ffff:10.0.0.1", &victim));
    CHECK_EQ(enter(c, &s[2], "10.0.0.1", &victim), -EAGAIN);
    CHECK_OK(enter(c, &s[3], "2001:db8::1", &victim));
    CHECK_OK(enter(c, &s[4], "2001:db8::ffff:2", &victim));
    CHECK_EQ(enter(c, &s[5], "2001:db8::3", &victim), -EAGAIN);
    CHECK_OK(enter(c, &s[6], "2001:db8:0:1::3", &victim));
    connections_wait(c, &s[3]); /* of another address */
    CHECK_EQ(enter(c, &s[2], "10.0.0.1", &victim), -EAGAIN);
    connections_wait(c, &s[1]);
    CHECK_OK(enter(c, &s[2], "10.0.0.1", &victim));
    CHECK(victim == &s[1]);
    connections_leave(c, victim);
    CHECK_OK(enter(c, &s[7], "a unix socket", &victim));
    leave_all(c, s, 8);
}

TEST(work_is_bounded_by_key_and_without_one)
{
    struct connections *c = table(100, 100, 2, 2);
    struct seat s[6], *victim;
    uint64_t one = connections_who(c, "one"), other = connections_who(c, "other");
    for (size_t i = 0; i < 6; i++)
        CHECK_OK(enter(c, &s[i], "10.0.0.1", &victim));
    CHECK_OK(connections_work(c, &s[0], one));
    CHECK_OK(connections_work(c, &s[1], one));
    CHECK_EQ(connections_work(c, &s[2], one), -EAGAIN);
    CHECK_OK(connections_work(c, &s[2], other));
    CHECK_OK(connections_work(c, &s[0], other)); /* another key on the same connection */
    CHECK_OK(connections_work(c, &s[3], one));
    CHECK_OK(connections_work(c, &s[4], 0));
    CHECK_OK(connections_work(c, &s[5], 0));
    CHECK_EQ(connections_work(c, &s[1], 0), -EAGAIN);
    CHECK(connections_known(&s[1]));
    connections_rest(c, &s[0]);
    connections_leave(c, &s[0]);
    CHECK_OK(connections_work(c, &s[4], other)); /* its caller becomes known */
    CHECK_OK(connections_work(c, &s[1], 0));
    CHECK(!connections_known(&s[1]));
    CHECK(cut_one == NULL);
    leave_all(c, s, 6);
}

TEST(an_upgraded_connection_keeps_its_seat_and_its_key)
{
    struct connections *c = table(4, 4, 3, 4);
    struct seat s[5], *victim;
    uint64_t one = connections_who(c, "one"), other = connections_who(c, "other");
    for (size_t i = 0; i < 4; i++)
        CHECK_OK(enter(c, &s[i], "10.0.0.1", &victim));
    for (size_t i = 0; i < 2; i++) {
        CHECK_OK(connections_work(c, &s[i], one));
        CHECK_OK(connections_upgrade(c, &s[i]));
        connections_rest(c, &s[i]);
    }
    CHECK_EQ(enter(c, &s[4], "10.0.0.2", &victim), -EAGAIN); /* nobody waits */
    CHECK_OK(connections_work(c, &s[2], other));
    CHECK_EQ(connections_upgrade(c, &s[2]), -EAGAIN); /* half of the seats are for requests */
    connections_leave(c, &s[0]);
    CHECK_OK(connections_upgrade(c, &s[2]));
    CHECK_OK(connections_work(c, &s[3], one));
    leave_all(c, s, 4);
}

TEST(upgraded_connections_leave_some_of_a_key_s_and_an_address_s_to_requests)
{
    struct connections *c = table(100, 8, 4, 8);
    struct seat s[9], *victim;
    uint64_t one = connections_who(c, "one"), other = connections_who(c, "other");
    for (size_t i = 0; i < 8; i++)
        CHECK_OK(enter(c, &s[i], "10.0.0.1", &victim));
    for (size_t i = 0; i < 4; i++)
        CHECK_OK(connections_work(c, &s[i], one));
    for (size_t i = 0; i < 3; i++)
        CHECK_OK(connections_upgrade(c, &s[i]));
    CHECK_EQ(connections_upgrade(c, &s[3]), -EAGAIN); /* the key's last is for requests */
    connections_leave(c, &s[0]);
    CHECK_OK(connections_upgrade(c, &s[3]));
    for (size_t i = 4; i < 7; i++) {
        CHECK_OK(connections_work(c, &s[i], other));
        CHECK_OK(connections_upgrade(c, &s[i]));
    }
    CHECK_OK(connections_work(c, &s[7], connections_who(c, "third")));
    CHECK_EQ(connections_upgrade(c, &s[7]), -EAGAIN); /* six of the address's eight */
    CHECK_OK(enter(c, &s[0], "10.0.0.1", &victim));
    CHECK_OK(connections_work(c, &s[0], one)); /* and calls go on */
    leave_all(c, s, 8);
}

TEST(open_connections_are_counted_by_what_they_do)
{
    struct connections *c = table(10, 10, 10, 10);
    struct connections_counts n = { 0 };
    struct seat s[4], *victim;
    for (size_t i = 0; i < 4; i++)
        CHECK_OK(enter(c, &s[i], "10.0.0.1", &victim));
    connections_wait(c, &s[0]);
    CHECK_OK(connections_work(c, &s[1], connections_who(c, "key")));
    connections_rest(c, &s[1]);
    connections_wait(c, &s[1]);
    CHECK_OK(connections_work(c, &s[2], 0));
    CHECK_OK(connections_work(c, &s[3], connections_who(c, "key")));
    CHECK_OK(connections_upgrade(c, &s[3]));
    connections_count(c, &n);
    CHECK_EQ(n.total, 4);
    CHECK_EQ(n.waiting, 2);
    CHECK_EQ(n.without_key, 2);
    CHECK_EQ(n.upgraded, 1);
    for (size_t i = 0; i < 4; i++)
        connections_leave(c, &s[i]);
    n = (struct connections_counts){ 0 };
    connections_count(c, &n);
    CHECK_EQ(n.total + n.waiting + n.without_key + n.upgraded, 0);
    connections_free(c);
}

TEST(work_without_a_key_that_takes_long_gives_way)
{
    struct connections *c = table(100, 100, 2, 1);
    struct seat s[2], *victim;
    CHECK_OK(enter(c, &s[0], "10.0.0.1", &victim));
    CHECK_OK(enter(c, &s[1], "10.0.0.1", &victim));
    CHECK_OK(connections_work(c, &s[0], 0));
    CHECK_EQ(connections_work(c, &s[1], 0), -EAGAIN);
    s[0].since_ms -= 60000;
    CHECK_OK(connections_work(c, &s[1], 0));
    CHECK(cut_one == &s[0]);
    connections_rest(c, &s[0]);
    leave_all(c, s, 2);
}
