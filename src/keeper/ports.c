/* The ways into a cell's network namespace and out of it: sockets there, for warrend and the broker. */
#include <errno.h>

#include "base/fd.h"
#include "keeper/keeper.h"
#include "kernel/netns.h"
#include "kernel/steer.h"

void ports_sockets(struct conn *conn)
{
    struct err err = ERR_INIT;
    int fds[NETNS_FAMILIES] = { -1, -1 };
    int pidfd = cells_pidfd(conn->k, conn->req.id);
    int r = pidfd < 0 ? err_fail(&err, FAIL_SANDBOX_NOT_RUNNING, "it does not run")
                      : netns_sockets(pidfd, fds, &err);
    if (r < 0)
        conn_result(conn, r, &err);
    else
        conn_answer_fds(conn, fds, fds[NETNS_V6] < 0 ? 1 : NETNS_FAMILIES);
    fd_close_all(fds, NETNS_FAMILIES);
}

/* Nothing of it stays here: who gets the descriptors is the way out, for as long as it holds them. */
void ports_steer(struct conn *conn)
{
    _Static_assert(STEER_FDS == KEEPER_STEER_FDS, "one for each");
    struct err err = ERR_INIT;
    int fds[STEER_FDS] = { -1, -1, -1, -1, -1, -1, -1 };
    int pidfd = cells_pidfd(conn->k, conn->req.id);
    int r = pidfd < 0 ? err_fail(&err, FAIL_SANDBOX_NOT_RUNNING, "it does not run")
                      : steer_make(pidfd, fds, &err);
    if (r < 0)
        conn_result(conn, r, &err);
    else
        conn_answer_fds(conn, fds, STEER_FDS);
    fd_close_all(fds, STEER_FDS);
}
