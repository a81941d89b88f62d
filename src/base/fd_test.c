#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define TRICKLE_US 5000

static void pair(int ends[2])
{
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
}

TEST(fd_a_sockets_own_limit_ends_a_read)
{
    const struct timeval limit = { .tv_usec = 20000 };
    char byte;
    int ends[2];
    pair(ends);
    CHECK(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
    CHECK_EQ(fd_read_full(ends[0], &byte, 1), -ETIMEDOUT);
    fd_close_all(ends, 2);
}

TEST(fd_a_sockets_own_limit_ends_a_write)
{
    const struct timeval limit = { .tv_usec = 20000 };
    static char much[4 * 1024 * 1024];
    int ends[2];
    pair(ends);
    CHECK(setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0);
    CHECK_EQ(fd_write_full(ends[0], much, sizeof(much)), -ETIMEDOUT);
    CHECK_EQ(fd_send_msg(ends[0], much, sizeof(much), NULL, 0), -ETIMEDOUT);
    fd_close_all(ends, 2);
}

static void *trickle(void *arg)
{
    const int *fd = arg;
    while (send(*fd, "x", 1, MSG_NOSIGNAL) == 1)
        (void)usleep(TRICKLE_US);
    return NULL;
}

/* Each byte comes long before the deadline; all of them do not. */
TEST(fd_a_deadline_is_for_the_whole)
{
    char much[4096];
    int ends[2];
    pthread_t t;
    pair(ends);
    CHECK(pthread_create(&t, NULL, trickle, &ends[1]) == 0);
    int64_t began = clock_mono_ms();
    CHECK_EQ(fd_read_by(ends[0], much, sizeof(much), began + 50), -ETIMEDOUT);
    CHECK(clock_mono_ms() - began < 5000);
    (void)close(ends[0]);
    (void)pthread_join(t, NULL);
    (void)close(ends[1]);
}

TEST(fd_what_is_there_is_read_before_a_deadline)
{
    char got[3];
    int ends[2];
    pair(ends);
    CHECK_EQ(fd_write_by(ends[1], "abc", 3, clock_mono_ms() + 1000), 0);
    CHECK_EQ(fd_read_by(ends[0], got, sizeof(got), clock_mono_ms() + 1000), 0);
    CHECK_EQ(got[2], 'c');
    (void)close(ends[1]);
    CHECK_EQ(fd_read_by(ends[0], got, 1, clock_mono_ms() + 1000), -EPIPE);
    (void)close(ends[0]);
}
