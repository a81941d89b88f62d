#include "core/init_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"

#define BYTES (8u * 1024 * 1024) /* more than all sockets on the way hold */

TEST(a_body_for_an_init_that_stopped_reading_ends_in_time)
{
    static char bytes[64 * 1024];
    int init[2], client[2], pipe_fds[2];
    size_t taken = 0, sent = 0;
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, init));
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, client));
    CHECK_OK(pipe2(pipe_fds, O_CLOEXEC));
    struct init_conn c = { .fd = init[0] };
    int r = 0;
    for (int i = 0; i < 100 && r == 0; i++) { /* nobody reads init[1] */
        for (ssize_t n; sent < BYTES && (n = write(client[1], bytes, sizeof(bytes))) > 0;)
            sent += (size_t)n;
        r = init_conn_pass(&c, WIRE_DATA, client[0], sizeof(bytes), pipe_fds, 1000, 50, &taken);
    }
    CHECK_EQ(r, -ETIMEDOUT);
    CHECK((fcntl(init[0], F_GETFL) & O_NONBLOCK) == 0);
    fd_close_all(init, 2);
    fd_close_all(client, 2);
    fd_close_all(pipe_fds, 2);
}
