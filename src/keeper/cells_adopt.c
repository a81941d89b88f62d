/* A new keeper's first look around: the cells that a former one left running, and what it left of others. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "keeper/cell.h"
#include "keeper/park.h"
#include "kernel/cgroup.h"
#include "kernel/execs.h"
#include "kernel/uidrange.h"

#define LOG_MODULE "cells"
#define STALE_TRIES 100 /* of 10 ms */

/* A daemon that was started with another --cgroup made the cell's groups below another root:
 * limit, freeze and end the cell there. */
void cells_find_groups(struct keeper *k, const char *id, const struct record *rec)
{
    char name[CGROUP_NAME_SIZE];
    struct err err = ERR_INIT;
    (void)snprintf(name, sizeof(name), "%s", rec->cgroup);
    if (!name[0] && cgroup_root_of(rec->pid, id, name) < 0)
        return;
    if (strcmp(name, cgroup_host_name(k->cgroups)) == 0)
        return;
    if (cgroup_host_add_former(k->cgroups, name, &err) < 0)
        log_error("its limits are out of reach: %s err=%s sandbox=%s", err.msg, strerror(err.code),
                  id);
}

static void remove_stale_group(const char *id, void *arg)
{
    struct keeper *k = arg;
    if (cell_find(k, id) || buckets_have(k, id))
        return;
    /* A child that was never released may still be exiting; remove its group after it. */
    (void)cgroup_kill(k->cgroups, id);
    for (int i = 0; cgroup_remove(k->cgroups, id) < 0 && i < STALE_TRIES; i++)
        (void)poll(NULL, 0, 10);
}

static void adopt_one(struct keeper *k, const char *id)
{
    struct record rec;
    _cleanup_fd_ int dir =
        openat(k->cells_dir, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int pidfd = dir < 0 ? -errno : record_read(dir, &rec);
    if (pidfd >= 0) {
        cells_find_groups(k, id, &rec);
        pidfd = record_open_pid(&rec);
    }
    struct cell *c = pidfd >= 0 ? cell_add(k, id) : NULL;
    if (!c) {
        remove_stale_group(id, k);
        cell_remove_run_dir(k, id);
        if (pidfd >= 0)
            (void)close(pidfd);
        return;
    }
    c->record = rec;
    c->pidfd = pidfd;
    c->state = CELL_RUNNING;
    (void)uidrange_adopt(k->uids, rec.uid_base);
    execs_begin(k->execs, rec.uid_base, id);
    struct park_note note;
    c->asleep = cell_is_marked_asleep(k, id);
    if (park_note_read(dir, &note) != -ENOENT)
        cell_rescue(c); /* and thawed then, unless it sleeps */
    else /* what stood still for a moment goes on: the former keeper's end cut that */
        (void)cgroup_freeze(k->cgroups, id, c->asleep, NULL);
    if (fchownat(dir, "init.sock", k->client_uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0)
        log_warn("its socket may still belong to another user sandbox=%s", id);
    if (loop_add(k->loop, &c->exit_watch, pidfd, EPOLLIN) < 0)
        log_error("cannot watch a running cell sandbox=%s", id);
    log_info("adopted sandbox=%s pid=%d", id, (int)rec.pid);
}

int cells_adopt(struct keeper *k, struct err *err)
{
    int fd = openat(k->cells_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        return err_set(err, errno, "cannot list the cells");
    for (struct dirent *e; (e = readdir(d));)
        if (id_valid(e->d_name))
            adopt_one(k, e->d_name);
    (void)closedir(d);
    int r = buckets_adopt(k, err);
    (void)cgroup_each(k->cgroups, remove_stale_group, k);
    return r;
}
