/* The way to the ports of a cell: sockets of its network namespace, for warrend to connect. */
#include <errno.h>

#include "base/fd.h"
#include "keeper/keeper.h"
#include "kernel/netns.h"

void ports_sockets(struct conn *conn)
{
    struct err err = ERR_INIT;
    int fds[NETNS_FAMILIES] = { -1, -1 };
    int pidfd = cells_pidfd(conn->k, conn->req.id);
    int r = pidfd < 0 ? err_name(&err, ESRCH, "sandbox_not_running", "it does not run")
                      : netns_sockets(pidfd, fds, &err);
    if (r < 0)
        conn_result(conn, r, &err);
    else
        conn_answer_fds(conn, fds, fds[NETNS_V6] < 0 ? 1 : NETNS_FAMILIES);
    fd_close_all(fds, NETNS_FAMILIES);
}
