/* Volumes: subvolumes that outlive cells, and how one is shown in a cell. */
#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "cell/ns_attach.h"
#include "keeper/attach.h"
#include "keeper/keeper.h"
#include "keeper/storage.h"

void volumes_put(struct conn *conn)
{
    struct err err = ERR_INIT;
    const struct keeper_request *q = &conn->req;
    int r = storage_volume_put(conn->k->storage, q->volume, q->limits.disk_bytes, &err);
    conn_result(conn, r, &err);
}

void volumes_remove(struct conn *conn)
{
    struct err err = ERR_INIT;
    int r = storage_volume_trash(conn->k->storage, conn->req.volume, &err);
    sweeper_sweep(&conn->k->sweeper, -1);
    conn_result(conn, r, &err);
}

void volumes_stat(struct conn *conn)
{
    struct keeper_reply reply = { 0 };
    reply.usage.disk_bytes = storage_volume_used(conn->k->storage, conn->req.volume);
    conn_answer(conn, &reply);
}

void volumes_list(struct conn *conn)
{
    conn_list_ids(conn, STORAGE_VOLUMES, "the volumes");
}

/* ---- showing one in a cell ---- */

static int attach(struct conn *conn, struct err *err)
{
    const struct keeper_request *q = &conn->req;
    _cleanup_fd_ int volume = -1, mount = -1;
    pid_t pid = cells_pid(conn->k, q->id);
    if (pid < 0)
        return err_fail(err, FAIL_SANDBOX_NOT_RUNNING, "it does not run");
    int r = storage_volume(conn->k->storage, q->volume, &volume, err);
    if (r == 0)
        r = ns_attach_prepare(pid, volume, q->read_only != 0, &mount, err);
    return r < 0 ? r : attach_begin(conn, mount, NULL, err);
}

void volumes_attach(struct conn *conn)
{
    struct err err = ERR_INIT;
    int r = attach(conn, &err);
    if (r < 0)
        conn_result(conn, r, &err);
}
