#include "broker/tally.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/cleanup.h"

static struct {
    unsigned rows, nameless, connections;
    uint64_t sent;
    bool refuse;
} got;

static int take(void *arg, const struct tally_row *row)
{
    if (got.refuse)
        return -ENOBUFS;
    got.rows++;
    got.nameless += row->host[0] == '\0';
    got.connections += row->connections;
    got.sent += row->sent_bytes;
    return 0;
}

static struct tally_row row(const char *sandbox, const char *host)
{
    struct tally_row r = { .connections = 1, .sent_bytes = 10 };
    (void)snprintf(r.sandbox, sizeof(r.sandbox), "%s", sandbox);
    (void)snprintf(r.host, sizeof(r.host), "%s", host);
    return r;
}

TEST(rows_come_together_are_bounded_and_none_is_lost)
{
    struct loop *loop;
    struct tally t;
    struct tally_row r;
    char host[32];
    CHECK_OK(loop_new(&loop));
    tally_init(&t, loop, take, NULL);
    for (int i = 0; i < 5; i++) {
        r = row("a", "one.example");
        tally_add(&t, &r);
    }
    r = row("b", "one.example");
    tally_add(&t, &r);
    got.refuse = true;
    tally_send(&t, NULL);
    CHECK_EQ(got.rows, 0);
    got.refuse = false;
    tally_send(&t, "a");
    CHECK_EQ(got.rows, 1);
    CHECK_EQ(got.connections, 5);
    CHECK_EQ(got.sent, 50);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(host, sizeof(host), "h%d.example", i);
        r = row("b", host);
        tally_add(&t, &r);
    }
    tally_done(&t);
    CHECK_EQ(got.rows, 1 + TALLY_ROWS_OF_ONE + 1);
    CHECK_EQ(got.nameless, 1);
    CHECK_EQ(got.connections, 5 + 1 + 1000);
    CHECK_EQ(got.sent, 10 * (5 + 1 + 1000));
    loop_free(loop);
}
