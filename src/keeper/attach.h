/* attach - the job that shows a detached mount in a cell.
 *
 * A process that goes into the cell (ns_attach), so a path that waits there does not hold the loop. */
#pragma once
#include "keeper/keeper.h"

/* Who answers in the mount, where somebody must: it is asked first, and killed when it does not answer. */
struct attach_server {
    int pidfd, report_fd; /* the latter has a struct bucket_report when it ended */
};

/* At conn's path in conn's cell; answers conn when it is done. Borrows the descriptors. server NULL: none. */
int attach_begin(struct conn *conn, int mount_fd, const struct attach_server *server,
                 struct err *err);
