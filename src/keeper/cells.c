/* The life of cells. Starting: made, its child at work. Running: warren-init is up. Ending: its
 * pid 1 was killed and is not gone yet. A cell leaves the table when its last process is gone and
 * its groups, id range and run directory have been given back; its storage is another matter. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "keeper/cell.h"
#include "keeper/storage.h"
#include "kernel/cgroup.h"
#include "kernel/execs.h"
#include "kernel/uidrange.h"

#define LOG_MODULE "cells"
#define LINGER_TRIES 600 /* ticks before a group that will not empty is left to the next start */

/* ---- the table ---- */

static struct cell **bucket_of(struct keeper *k, const char *id)
{
    return &k->cells[hash_text(id) % CELL_BUCKETS];
}

struct cell *cell_find(struct keeper *k, const char *id)
{
    struct cell *c = *bucket_of(k, id);
    while (c && strcmp(c->id, id) != 0)
        c = c->next;
    return c;
}

void cell_forget(struct cell *c)
{
    struct cell **at = bucket_of(c->k, c->id);
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    loop_remove(c->k->loop, &c->exit_watch);
    loop_remove(c->k->loop, &c->status_watch);
    fd_close_all(&c->pidfd, 1);
    fd_close_all(&c->status_fd, 1);
    fd_close_all(&c->root_fd, 1);
    loop_later(c->k->loop, c);
}

void cell_answer(struct cell *c, int r, const struct err *err)
{
    struct conn *asker = take_ptr(c->asker);
    if (asker)
        conn_result(asker, r, err);
}

/* ---- what is heard of one ---- */

/* Why the child could not become warren-init: 1 and its words, or 0 if it left none. */
static int read_report(struct cell *c, struct err *err)
{
    if (c->status_fd < 0 || read(c->status_fd, err, sizeof(*err)) != (ssize_t)sizeof(*err))
        return 0;
    err->failure = FAIL_NONE; /* a child has no say in it */
    err->msg[sizeof(err->msg) - 1] = '\0';
    if (err->code <= 0)
        err->code = EIO;
    log_error("a cell could not be built: %s err=%s sandbox=%s", err->msg, strerror(err->code),
              c->id);
    return 1;
}

/* warren-init was started, or the child says why not. */
static void on_status(struct watch *w, uint32_t events)
{
    struct cell *c = container_of(w, struct cell, status_watch);
    struct err err = ERR_INIT;
    loop_remove(c->k->loop, &c->status_watch);
    if (c->state != CELL_STARTING)
        return;
    if (read_report(c, &err)) {
        cell_answer(c, -err.code, &err);
        cell_kill(c);
        return;
    }
    if (fd_wait(c->pidfd, POLLIN, 0) > 0)
        return; /* it died without a word: the exit event tells */
    c->state = CELL_RUNNING;
    execs_begin(c->k->execs, c->record.uid_base, c->id); /* init itself does not count */
    fd_close_all(&c->status_fd, 1);
    c->status_fd = -1;
    cell_answer(c, 0, NULL);
}

static void on_exit_event(struct watch *w, uint32_t events)
{
    struct cell *c = container_of(w, struct cell, exit_watch);
    struct err err = ERR_INIT;
    if (c->state == CELL_RUNNING) {
        log_warn("its first process died sandbox=%s", c->id);
        c->last.cpu_us = cgroup_cpu_us(c->k->cgroups, c->id);
        c->last.disk_bytes = storage_box_used(c->k->storage, c->id);
        server_notify_exit(c->k, c->id, &c->last);
    } else if (c->state == CELL_STARTING) {
        if (read_report(c, &err) == 0)
            (void)err_set(&err, ECHILD, "the sandbox's first process died while starting");
        cell_answer(c, -err.code, &err);
    }
    cell_bury(c);
}

struct cell *cell_add(struct keeper *k, const char *id)
{
    struct cell *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->k = k;
    (void)snprintf(c->id, sizeof(c->id), "%s", id);
    c->pidfd = c->status_fd = c->root_fd = c->exit_watch.fd = c->status_watch.fd = -1;
    c->exit_watch.fn = on_exit_event;
    c->status_watch.fn = on_status;
    struct cell **b = bucket_of(k, id);
    c->next = *b;
    *b = c;
    return c;
}

/* ---- ending ---- */

/* The last process is gone. */
void cell_bury(struct cell *c)
{
    struct keeper *k = c->k;
    siginfo_t si;
    cell_drop_revival(c);
    if (c->pidfd >= 0)
        (void)waitid(P_PIDFD, (id_t)c->pidfd, &si, WEXITED | WNOHANG); /* not ours: no matter */
    loop_remove(k->loop, &c->exit_watch);
    loop_remove(k->loop, &c->status_watch);
    execs_end(k->execs, c->record.uid_base);
    uidrange_give_back(k->uids, c->record.uid_base);
    cell_remove_run_dir(k, c->id);
    buckets_end(k, c->id);
    struct err err = ERR_INIT;
    c->last.cpu_us = cgroup_cpu_us(k->cgroups, c->id); /* nobody in it can add to this any more */
    int r = c->delete_storage ? storage_box_trash(k->storage, c->id, &err) : 0;
    if (c->delete_storage)
        sweeper_bury(&k->sweeper, take_fd(c->root_fd));
    else
        sweeper_sweep(&k->sweeper, take_fd(c->root_fd));
    struct keeper_reply reply = { .usage = c->last,
                                  .frozen_us = c->frozen_us,
                                  .memory_bytes = c->memory_bytes };
    struct conn *asker = take_ptr(c->asker);
    if (asker && r == 0)
        conn_answer(asker, &reply);
    else if (asker)
        conn_result_usage(asker, r, &err, &c->last);
    if (c->kept[0])
        points_write_out(k, c->kept);
    if (cgroup_remove(k->cgroups, c->id) == 0) {
        cell_forget(c);
        return;
    }
    c->state = CELL_LINGERING;
    k->lingering++;
    loop_want_tick(k->loop, true);
}

void cell_kill(struct cell *c)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/%d/root", (int)c->record.pid);
    if (c->root_fd < 0)
        c->root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    c->last.memory_bytes = cgroup_memory_bytes(c->k->cgroups, c->id);
    c->last.disk_bytes = storage_box_used(c->k->storage, c->id);
    if (c->pauses || c->asleep) /* v1's freezer keeps even a killed process */
        (void)cgroup_freeze(c->k->cgroups, c->id, false, NULL);
    c->pauses = 0;
    c->asleep = false;
    c->state = CELL_ENDING;
    buckets_end(c->k, c->id); /* nobody inside waits for them any more */
    if (c->pidfd < 0)         /* still being brought back: whoever does it sees the end of it */
        (void)cgroup_kill(c->k->cgroups, c->id);
    else
        (void)pidfd_send_signal(c->pidfd, SIGKILL, NULL,
                                0); /* takes its whole pid namespace along */
}

void cells_end(struct conn *conn)
{
    struct keeper *k = conn->k;
    bool delete = conn->req.op == KEEPER_DELETE;
    points_cancel(k, conn->req.id);
    images_cancel(k, conn->req.id);
    struct cell *c = cell_find(k, conn->req.id);

    if (c && c->state == CELL_LINGERING)
        c = NULL;
    if (!c) {
        struct err err = ERR_INIT;
        int r = delete ? storage_box_trash(k->storage, conn->req.id, &err) : 0;
        if (delete)
            sweeper_sweep(&k->sweeper, -1);
        conn_result(conn, r, &err);
        return;
    }
    struct err err = ERR_INIT;
    (void)err_fail(&err, FAIL_SUPERSEDED, "another operation took its place");
    cell_answer(c, -ECANCELED, &err);
    c->delete_storage |= delete;
    conn_keep(conn, &c->asker);
    if (c->state != CELL_ENDING)
        cell_kill(c);
}

void cells_end_kept(struct conn *conn, uint64_t frozen_us, uint64_t memory_bytes)
{
    struct err err = ERR_INIT;
    struct cell *c = cell_find(conn->k, conn->req.id);
    if (!c || c->state != CELL_RUNNING) {
        conn_result(conn, err_fail(&err, FAIL_SANDBOX_NOT_RUNNING, "it ended meanwhile"), &err);
        return;
    }
    c->frozen_us = frozen_us;
    c->memory_bytes = memory_bytes;
    memcpy(c->kept, conn->req.point, sizeof(c->kept));
    conn_keep(conn, &c->asker);
    cell_kill(c);
}

void cells_tick(struct keeper *k)
{
    buckets_tick(k);
    for (size_t b = 0; k->lingering && b < CELL_BUCKETS; b++)
        for (struct cell *c = k->cells[b], *next; c; c = next) {
            next = c->next;
            if (c->state != CELL_LINGERING)
                continue;
            if (cgroup_remove(k->cgroups, c->id) < 0 && ++c->tries < LINGER_TRIES)
                continue;
            k->lingering--;
            cell_forget(c);
        }
    loop_want_tick(k->loop, k->lingering > 0);
}

int cells_kill_all(struct keeper *k)
{
    int left = 0;
    for (size_t b = 0; b < CELL_BUCKETS; b++)
        for (struct cell *c = k->cells[b], *next; c; c = next) {
            next = c->next;
            cell_kill(c);
            if (fd_wait(c->pidfd, POLLIN, 10000) <= 0)
                left++;
            else
                cell_bury(c);
        }
    buckets_kill_all(k);
    for (int i = 0; k->lingering && i < LINGER_TRIES; i++) {
        (void)poll(NULL, 0, 10);
        cells_tick(k);
    }
    return left || k->lingering ? -EBUSY : 0;
}

/* ---- going on ---- */

void cells_rescue(struct keeper *k, const char *id)
{
    struct cell *c = cell_find(k, id);
    if (!c || c->state != CELL_RUNNING)
        return;
    if (c->pauses)
        c->pauses--; /* thawed when it is back, not before */
    cell_rescue(c);
}
