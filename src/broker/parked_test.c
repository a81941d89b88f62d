#include "broker/parked.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

#define BOX "a0000000000000000000"
#define OTHER "b0000000000000000000"

static const struct broker_proof nobody = { .token = "" };
static const struct broker_answer yes = { .verdict = BROKER_OK };

/* A connection to there that has answered; its other end goes with the process. */
static void put(struct parked *all, const char *sandbox, unsigned port)
{
    int pair[2];
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
    CHECK(parked_learn(all, sandbox, port, &nobody, &yes) != NULL);
    parked_put(all, sandbox, port, upstream_new(all->loop, pair[1]));
}

TEST(one_sandbox_leaves_room_for_the_connections_of_others)
{
    static struct parked all;
    struct loop *loop;
    CHECK_OK(loop_new(&loop));
    parked_init(&all, loop, 100);
    for (unsigned port = 1000; port < 1100; port++) /* it listens everywhere */
        for (int i = 0; i < 2; i++)
            put(&all, BOX, port);
    CHECK_EQ(all.crowd.n, 50);
    const struct parked_verdict *v;
    put(&all, OTHER, 81);
    struct upstream *u = parked_take(&all, OTHER, 81, &nobody, &v);
    CHECK(u && u->reused);
    upstream_close(u);
    parked_done(&all);
    CHECK_EQ(all.crowd.n, 0);
    loop_free(loop);
}

TEST(a_verdict_is_for_who_brought_its_proof)
{
    static struct parked all;
    struct loop *loop;
    struct broker_answer answer = { .verdict = BROKER_OK };
    struct broker_proof some = { .token = "right" }, other = { .token = "wrong" };
    const struct parked_verdict *v;
    CHECK_OK(loop_new(&loop));
    parked_init(&all, loop, 100);
    (void)snprintf(answer.data, sizeof(answer.data), "{}");
    put(&all, BOX, 80);
    CHECK(parked_learn(&all, BOX, 80, &some, &answer) != NULL);
    CHECK(!parked_take(&all, BOX, 80, &other, &v));
    struct upstream *u = parked_take(&all, BOX, 80, &some, &v);
    CHECK(u != NULL);
    CHECK_STR(v->data, "{}");
    parked_put(&all, BOX, 80, u);
    u = parked_take(&all, BOX, 80, &nobody, &v);
    CHECK(u && !v->data);
    upstream_close(u);
    parked_done(&all);
    loop_free(loop);
}
