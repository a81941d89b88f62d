/* Imports: a child unpacks, the loop goes on; an image appears under its name only when it is
 * whole. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "keeper/keeper.h"
#include "keeper/storage.h"
#include "keeper/unpack.h"

struct import {
    struct keeper *k;
    struct import *next;
    struct watch watch; /* on report_fd */
    int report_fd;
    pid_t pid;
    char tree[KEEPER_IMAGE_SIZE];
    struct conn *asker;
};

static int finish(struct import *im, uint64_t *ret_bytes, struct err *err)
{
    struct unpack_report rep;
    bool whole = fd_read_full(im->report_fd, &rep, sizeof(rep)) == 0;
    (void)waitpid(im->pid, NULL, 0);
    if (!whole)
        return err_set(err, ECHILD, "unpacking was killed");
    rep.what[sizeof(rep.what) - 1] = rep.msg[sizeof(rep.msg) - 1] = '\0';
    if (rep.code == ENOSPC)
        return err_name(err, ENOSPC, "no_space", "%s", rep.msg);
    if (rep.code)
        return err_name(err, rep.code > 0 ? rep.code : EINVAL, "invalid_image", "%s", rep.msg);
    return storage_image_commit(im->k->storage, im->tree, ret_bytes, err);
}

static void on_report(struct watch *w, uint32_t events)
{
    struct import *im = container_of(w, struct import, watch);
    struct keeper_reply reply = { 0 };
    struct err err = ERR_INIT;

    int r = finish(im, &reply.size_bytes, &err);
    if (r < 0)
        storage_image_abort(im->k->storage, im->tree);
    loop_remove(im->k->loop, &im->watch);
    (void)close(im->report_fd);
    if (im->asker && r == 0)
        conn_answer(im->asker, &reply);
    else if (im->asker)
        conn_result(im->asker, r, &err);
    else if (r == 0) /* nobody was told, so nobody will name it */
        (void)storage_image_trash(im->k->storage, im->tree, NULL);
    sweeper_sweep(&im->k->sweeper, -1);
    for (struct import **at = &im->k->imports; *at; at = &(*at)->next)
        if (*at == im) {
            *at = im->next;
            break;
        }
    loop_later(im->k->loop, im);
}

static int start(struct import *im, struct conn *conn, struct err *err)
{
    _cleanup_fd_ int dir = -1;
    int r = storage_image_begin(im->k->storage, im->tree, &dir, err);
    if (r < 0)
        return r;
    r = unpack_start(conn->passed_fd, dir, &im->pid, &im->report_fd, err);
    if (r == 0)
        r = loop_add(im->k->loop, &im->watch, im->report_fd, EPOLLIN);
    if (r < 0)
        storage_image_abort(im->k->storage, im->tree);
    return r;
}

void images_put(struct conn *conn)
{
    struct err err = ERR_INIT;
    struct import *im = calloc(1, sizeof(*im));
    if (!im) {
        conn_result(conn, err_set(&err, ENOMEM, "out of memory"), &err);
        return;
    }
    im->k = conn->k;
    im->watch = (struct watch){ -1, on_report };
    (void)snprintf(im->tree, sizeof(im->tree), "%s", conn->req.image);
    int r = start(im, conn, &err);
    if (r < 0) {
        free(im);
        conn_result(conn, r, &err);
        return;
    }
    im->next = im->k->imports;
    im->k->imports = im;
    (void)close(take_fd(conn->passed_fd)); /* the child has it: its end must be seen there */
    conn_keep(conn, &im->asker);
}

void images_remove(struct conn *conn)
{
    struct err err = ERR_INIT;
    int r = storage_image_trash(conn->k->storage, conn->req.image, &err);
    sweeper_sweep(&conn->k->sweeper, -1);
    conn_result(conn, r, &err);
}

static int list_one(const char *name, void *arg)
{
    struct conn *conn = arg;
    struct keeper_reply reply = { 0 };
    if (strlen(name) == KEEPER_IMAGE_SIZE - 1) {
        (void)snprintf(reply.image, sizeof(reply.image), "%s", name);
        reply.size_bytes = storage_image_used(conn->k->storage, name);
        conn_send_more(conn, &reply);
    }
    return 0;
}

void images_list(struct conn *conn)
{
    struct err err = ERR_INIT;
    int r = storage_each(conn->k->storage, STORAGE_IMAGES, list_one, conn);
    if (r < 0)
        (void)err_set(&err, -r, "cannot list the images");
    conn_result(conn, r, &err);
}
