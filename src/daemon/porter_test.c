#include "daemon/porter.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "wire/broker.h"

#define MANY 400

/* A connection's end, which it takes; the other is told which one it was. */
static void hand(struct porter *p, int number)
{
    int pair[2];
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    CHECK_EQ(write(pair[0], &number, sizeof(number)), sizeof(number));
    (void)close(pair[0]);
    porter_hand(p, pair[1]);
}

static int number_of(int link_fd)
{
    struct broker_client msg;
    size_t n = 0;
    int fd = -1, number = -1;
    CHECK_EQ(fd_recv_msg(link_fd, &msg, sizeof(msg), &fd, 1, &n), sizeof(msg));
    CHECK_EQ(n, 1);
    CHECK_EQ(msg.type, BROKER_CLIENT);
    CHECK_EQ(read(fd, &number, sizeof(number)), sizeof(number));
    (void)close(fd);
    return number;
}

TEST(connections_wait_for_a_broker_that_is_busy)
{
    struct porter *p = NULL;
    int link[2];
    CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link));
    const int little = 4096;
    CHECK_OK(setsockopt(link[0], SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)));
    CHECK_OK(porter_new(link[0], &p, NULL));
    for (int i = 0; i < MANY; i++)
        hand(p, i);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(number_of(link[1]), i);
    for (int i = 0; i < MANY; i++) /* with some on their way, and some in line */
        hand(p, i);
    CHECK_OK(shutdown(link[0], SHUT_RDWR));
    porter_free(p);
    (void)close(link[0]);
    (void)close(link[1]);
}
