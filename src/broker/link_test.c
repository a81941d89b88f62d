#include "broker/link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

#define FLOODER "a0000000000000000000"
#define NEIGHBOUR "b0000000000000000000"

struct rig {
    struct loop *loop;
    struct link *link;
    int warrend;
};

static void rig_init(struct rig *r)
{
    static const struct link_handler none[] = { { 0 } };
    int pair[2];
    CHECK_OK(loop_new(&r->loop));
    CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
    CHECK_OK(link_new(r->loop, pair[0], none, NULL, &r->link, NULL));
    r->warrend = pair[1];
}

static void rig_done(struct rig *r)
{
    link_free(r->link);
    loop_free(r->loop);
    (void)close(r->warrend);
}

/* As many as are taken; all of them say who they are of. */
static size_t flood(struct rig *r, const char *of)
{
    size_t n = 0;
    while (link_offer(r->link, of, of, strlen(of) + 1) == 0)
        n++;
    return n;
}

static struct loop *turning;

static void on_turned(struct deadline *d)
{
    loop_stop(turning);
}

/* Whatever can be done now is done. */
static void turn(struct rig *r)
{
    struct deadline soon = { 0 };
    turning = r->loop;
    loop_deadline(r->loop, &soon, 1, on_turned);
    CHECK_OK(loop_run(r->loop, 0, NULL, NULL));
}

TEST(a_flood_of_one_leaves_room_for_others_and_for_questions)
{
    struct rig r;
    rig_init(&r);
    CHECK(flood(&r, FLOODER) > 100);
    size_t others = flood(&r, NEIGHBOUR);
    CHECK(others > 100);
    CHECK(flood(&r, FLOODER) == 0);
    CHECK_OK(link_send(r.link, "question", 9, -1));
    rig_done(&r);
}

TEST(what_was_taken_arrives_and_makes_room)
{
    struct rig r;
    char got[64];
    size_t n = 0, want;
    rig_init(&r);
    want = flood(&r, FLOODER) + flood(&r, NEIGHBOUR);
    while (n < want) {
        ssize_t one = recv(r.warrend, got, sizeof(got), MSG_DONTWAIT);
        if (one > 0) {
            n++;
            continue;
        }
        CHECK_EQ(errno, EAGAIN);
        turn(&r);
    }
    CHECK(flood(&r, FLOODER) > 100);
    rig_done(&r);
}
