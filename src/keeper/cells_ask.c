/* What is asked of cells that run, or of all of them: limits, standing still, figures, lists. */
#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "cell/ns_size.h"
#include "keeper/cell.h"
#include "keeper/storage.h"
#include "kernel/cgroup.h"
#include "kernel/execs.h"

#define LOG_MODULE "cells"

/* What programs inside see of it, so that `free` tells the truth of a moment ago. */
static void show_use(struct cell *c, uint64_t used_bytes)
{
    int r = ns_size_use(c->record.pid, used_bytes, cgroup_cache_bytes(c->k->cgroups, c->id));
    if (r < 0)
        log_warn("cannot show it what it uses err=%s sandbox=%s", strerror(-r), c->id);
}

/* A sandbox that did nothing sees what it saw: most readings are of those, every some seconds of each. */
static void show_news(struct cell *c, const struct cgroup_usage *u)
{
    if (u->cpu_us == c->shown_cpu_us && u->memory_bytes == c->shown_bytes && u->cpu_us)
        return;
    c->shown_cpu_us = u->cpu_us;
    c->shown_bytes = u->memory_bytes;
    show_use(c, u->memory_bytes);
}

static void show_limits(struct cell *c, const struct cgroup_limits *limits)
{
    int r = ns_size_limit(c->record.pid, limits);
    if (r < 0)
        log_warn("cannot show it its limits err=%s sandbox=%s", strerror(-r), c->id);
    show_use(c, cgroup_memory_bytes(c->k->cgroups, c->id));
}

void cells_limits(struct conn *conn)
{
    struct err err = ERR_INIT;
    const struct keeper_limits *l = &conn->req.limits;
    const struct cgroup_limits limits = { l->memory_bytes, l->cpu_millis, l->pids };
    struct cell *c = cell_find(conn->k, conn->req.id);
    int r = 0;
    if (!c || c->state != CELL_RUNNING)
        r = err_fail(&err, FAIL_SANDBOX_NOT_RUNNING, "it does not run");
    if (r == 0)
        r = cgroup_limit(conn->k->cgroups, c->id, &limits, &err);
    if (r == 0)
        show_limits(c, &limits);
    if (r == 0 && l->disk_bytes)
        r = storage_box_limit(conn->k->storage, c->id, l->disk_bytes, &err);
    conn_result(conn, r, &err);
}

/* It stands still while anybody wants it to. */
static int stand_still(struct cell *c, unsigned pauses, bool asleep, struct err *err)
{
    bool was = c->pauses || c->asleep, will = pauses || asleep;
    int r = was == will ? 0 : cgroup_freeze(c->k->cgroups, c->id, will, err);
    if (r < 0)
        return r;
    c->pauses = pauses;
    c->asleep = asleep;
    return 0;
}

void cells_freeze(struct conn *conn)
{
    struct err err = ERR_INIT;
    struct cell *c = cell_find(conn->k, conn->req.id);
    bool on = conn->req.op == KEEPER_FREEZE;
    int r = 0;
    if (!c || c->state != CELL_RUNNING)
        r = err_fail(&err, FAIL_SANDBOX_NOT_RUNNING, "it does not run");
    /* Marked before it stands still and until it goes on: what a crash leaves is known to the next. */
    if (r == 0 && on && (r = cell_mark_asleep(conn->k, c->id, true)) < 0)
        (void)err_set(&err, -r, "cannot write down that '%s' sleeps", c->id);
    if (r == 0)
        r = stand_still(c, c->pauses, on, &err);
    if (c && !c->asleep)
        (void)cell_mark_asleep(conn->k, c->id, false);
    conn_result(conn, r, &err);
}

int cells_pause(struct keeper *k, const char *id, bool on, struct err *err)
{
    struct cell *c = cell_find(k, id);
    if (!c || c->state != CELL_RUNNING || (!on && c->pauses == 0))
        return 0;
    return stand_still(c, on ? c->pauses + 1 : c->pauses - 1, c->asleep, err);
}

pid_t cells_pid(struct keeper *k, const char *id)
{
    struct cell *c = cell_find(k, id);
    return c && c->state == CELL_RUNNING ? c->record.pid : -ESRCH;
}

bool cells_come_back(struct keeper *k, const char *id)
{
    struct cell *c = cell_find(k, id);
    return c && c->revival;
}

uint32_t cells_uid_base(struct keeper *k, const char *id)
{
    struct cell *c = cell_find(k, id);
    return c && c->state == CELL_RUNNING ? c->record.uid_base : 0;
}

int cells_pidfd(struct keeper *k, const char *id)
{
    struct cell *c = cell_find(k, id);
    return c && c->state == CELL_RUNNING ? c->pidfd : -ESRCH;
}

void cells_stat(struct conn *conn)
{
    struct keeper_reply reply = { 0 };
    struct cgroup_usage u = { 0 };
    struct cell *c = cell_find(conn->k, conn->req.id);
    if (c && c->state == CELL_RUNNING && cgroup_usage(conn->k->cgroups, c->id, &u, NULL) == 0)
        show_news(c, &u);
    reply.running = c && c->state == CELL_RUNNING;
    reply.changed = !conn->req.point[0] || points_changed(conn->k, conn->req.id, conn->req.point);
    reply.usage = (struct keeper_usage){
        .memory_bytes = u.memory_bytes,
        .memory_peak_bytes = u.memory_peak_bytes,
        .cpu_us = u.cpu_us,
        .oom_kills = u.oom_kills,
        .pids = u.pids,
        .disk_bytes = storage_box_used(conn->k->storage, conn->req.id),
    };
    conn_answer(conn, &reply);
}

static int list_stored(const char *name, void *arg)
{
    struct conn *conn = arg;
    if (id_valid(name) && !cell_find(conn->k, name)) {
        struct keeper_reply reply = { 0 };
        (void)snprintf(reply.id, sizeof(reply.id), "%s", name);
        conn_send_more(conn, &reply);
    }
    return 0;
}

/* What it ran, if it is here or was: the counts outlive it. */
void cells_programs(struct conn *conn)
{
    struct err err = ERR_INIT;
    struct execs_program seen[KEEPER_PROGRAMS_MAX];
    struct keeper_program out;
    _Static_assert(KEEPER_PROGRAMS_MAX == EXECS_PROGRAMS_MAX &&
                       sizeof(out.path) == sizeof(seen->path),
                   "one for each");
    size_t n = execs_list(conn->k->execs, conn->req.id, seen, ARRAY_LEN(seen));
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        out = (struct keeper_program){ seen[i].count, seen[i].first_ms, seen[i].last_ms, "" };
        memcpy(out.path, seen[i].path, sizeof(out.path));
        r = fd_write_full(conn->passed[0], &out, sizeof(out));
    }
    if (r < 0)
        (void)err_set(&err, -r, "cannot write what it ran");
    conn_result(conn, r, &err);
}

void cells_list(struct conn *conn)
{
    for (size_t b = 0; b < CELL_BUCKETS; b++)
        for (struct cell *c = conn->k->cells[b]; c; c = c->next) {
            struct keeper_reply reply = { .running = c->state == CELL_RUNNING,
                                          .frozen = c->asleep };
            if (c->state == CELL_LINGERING)
                continue;
            (void)snprintf(reply.id, sizeof(reply.id), "%s", c->id);
            (void)snprintf(reply.image, sizeof(reply.image), "%s", c->record.image);
            conn_send_more(conn, &reply);
        }
    int r = storage_each(conn->k->storage, STORAGE_BOXES, list_stored, conn);
    struct err err = ERR_INIT;
    if (r < 0)
        (void)err_set(&err, -r, "cannot list the stored sandboxes");
    conn_result(conn, r, &err);
}
