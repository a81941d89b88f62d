#include "broker/forward.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

#define FLOODER "a0000000000000000000"
#define NEIGHBOUR "b0000000000000000000"

/* As many as it is given before one is refused; what is left of them is closed with the process. */
static unsigned fill(struct forwards *all, const char *sandbox)
{
    for (unsigned n = 0;; n++) {
        int client[2], inside[2], lease[2];
        char byte;
        CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, client));
        CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, inside));
        CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lease));
        forward_begin(all, sandbox, (const int[]){ client[1], inside[1], lease[1] });
        bool ended = recv(lease[0], &byte, 1, MSG_DONTWAIT) == 0;
        (void)close(lease[0]);
        if (recv(client[0], &byte, 1, MSG_DONTWAIT) == 0) { /* its other end is closed */
            CHECK(ended);
            (void)close(client[0]);
            (void)close(inside[0]);
            return n;
        }
        CHECK(!ended);
    }
}

TEST(one_sandbox_leaves_room_for_the_forwards_of_others)
{
    struct forwards all;
    struct loop *loop;
    CHECK_OK(loop_new(&loop));
    forwards_init(&all, loop, NULL);
    all.most = 100;
    CHECK_EQ(fill(&all, FLOODER), 20);
    CHECK_EQ(fill(&all, FLOODER), 0);
    CHECK(fill(&all, NEIGHBOUR) >= 15);
    forwards_done(&all);
    CHECK_EQ(all.n, 0);
    loop_free(loop);
}

TEST(the_lease_lasts_as_long_as_the_forward)
{
    struct forwards all;
    struct loop *loop;
    int client[2], inside[2], lease[2];
    char byte;
    CHECK_OK(loop_new(&loop));
    forwards_init(&all, loop, NULL);
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, client));
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, inside));
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lease));
    forward_begin(&all, NEIGHBOUR, (const int[]){ client[1], inside[1], lease[1] });
    CHECK(recv(lease[0], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    forwards_done(&all);
    CHECK_EQ(recv(lease[0], &byte, 1, MSG_DONTWAIT), 0);
    (void)close(client[0]);
    (void)close(inside[0]);
    (void)close(lease[0]);
    loop_free(loop);
}
