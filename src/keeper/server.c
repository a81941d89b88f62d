/* The keeper's socket. What may be asked is the table below; each request is checked against its
 * shape before anything is done, and each connection carries one. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/criu.h"
#include "base/fd.h"
#include "base/log.h"
#include "keeper/keeper.h"
#include "keeper/storage.h"
#include "kernel/cgroup.h"

#define LOG_MODULE "keeper"
#define SEND_TIMEOUT_S 5 /* a client that does not read its answer does not hold us */
#define TICK_MS 20
#define MEMORY_MAX_BYTES (1ull << 46)
#define CPU_MAX_MILLIS 10000000u
#define PIDS_MAX 4194304u
#define KNOWN_FLAGS                                                                            \
    (KEEPER_POINT_MEMORY | KEEPER_POINT_END | KEEPER_COMPARE_BOX | KEEPER_COMPARE_BOX_BEFORE | \
     KEEPER_BOX_AHEAD | KEEPER_BOX_MADE | KEEPER_MAKE_APART)

static void answer_probe(struct conn *c);
static void answer_room(struct conn *c);
static void start_watching(struct conn *c);

enum needs {
    NEEDS_ID = 1,
    NEEDS_IMAGE = 2,
    NEEDS_LIMITS = 4,
    NEEDS_FD = 8,
    NEEDS_FDS = 16,
    NEEDS_VOLUME = 32,
    NEEDS_PATH = 64,
    NEEDS_POINT = 128,
};

static const struct op {
    enum keeper_op op;
    unsigned needs;
    void (*fn)(struct conn *c);
} ops[] = {
    { KEEPER_MAKE, NEEDS_ID | NEEDS_IMAGE | NEEDS_LIMITS, cells_make },
    { KEEPER_LIMITS, NEEDS_ID | NEEDS_LIMITS, cells_limits },
    { KEEPER_STOP, NEEDS_ID, cells_end },
    { KEEPER_DELETE, NEEDS_ID, cells_end },
    { KEEPER_FREEZE, NEEDS_ID, cells_freeze },
    { KEEPER_THAW, NEEDS_ID, cells_freeze },
    { KEEPER_STAT, NEEDS_ID, cells_stat },
    { KEEPER_LIST, 0, cells_list },
    { KEEPER_WATCH, 0, start_watching },
    { KEEPER_LAYER_PUT, NEEDS_IMAGE | NEEDS_FD, images_layer },
    { KEEPER_IMAGE_RM, NEEDS_IMAGE, images_remove },
    { KEEPER_IMAGE_LIST, 0, images_list },
    { KEEPER_PROBE, 0, answer_probe },
    { KEEPER_ROOM, 0, answer_room },
    { KEEPER_DIFF, NEEDS_ID | NEEDS_FD, images_diff },
    { KEEPER_SPLIT, NEEDS_FDS, images_split },
    { KEEPER_CHANGES, NEEDS_ID | NEEDS_IMAGE | NEEDS_FD, images_changes },
    { KEEPER_PROGRAMS, NEEDS_ID | NEEDS_FD, cells_programs },
    { KEEPER_SOCKETS_OF, NEEDS_ID, ports_sockets },
    { KEEPER_STEER, NEEDS_ID, ports_steer },
    { KEEPER_VOLUME_PUT, NEEDS_VOLUME | NEEDS_LIMITS, volumes_put },
    { KEEPER_VOLUME_RM, NEEDS_VOLUME, volumes_remove },
    { KEEPER_VOLUME_STAT, NEEDS_VOLUME, volumes_stat },
    { KEEPER_VOLUME_LIST, 0, volumes_list },
    { KEEPER_POINT_PUT, NEEDS_ID | NEEDS_POINT, points_put },
    { KEEPER_POINT_RM, NEEDS_POINT, points_remove },
    { KEEPER_POINT_LIST, 0, points_list },
    { KEEPER_BOX_PUT, NEEDS_ID | NEEDS_POINT | NEEDS_LIMITS, points_box },
    { KEEPER_VOLUME_POINT_PUT, NEEDS_VOLUME | NEEDS_POINT | NEEDS_FD, volume_points_put },
    { KEEPER_VOLUME_POINT_RM, NEEDS_POINT, volume_points_remove },
    { KEEPER_VOLUME_POINT_LIST, 0, volume_points_list },
    { KEEPER_VOLUME_RESTORE, NEEDS_VOLUME | NEEDS_POINT | NEEDS_LIMITS, volume_points_restore },
    { KEEPER_POINT_READ, NEEDS_POINT | NEEDS_FD, images_point_read },
    { KEEPER_POINT_LAY, NEEDS_POINT | NEEDS_LIMITS | NEEDS_FD, images_point_lay },
    { KEEPER_COMPARE, NEEDS_ID | NEEDS_POINT | NEEDS_IMAGE | NEEDS_FDS, images_compare },
    { KEEPER_ATTACH_BUCKET, NEEDS_ID | NEEDS_VOLUME | NEEDS_PATH | NEEDS_FD, buckets_attach },
    { KEEPER_ATTACH, NEEDS_ID | NEEDS_VOLUME | NEEDS_PATH, volumes_attach },
};

/* ---- one connection ---- */

static void conn_close(struct conn *c)
{
    loop_remove(c->k->loop, &c->watch);
    for (struct conn **at = &c->k->conns; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    if (c->kept_by && *c->kept_by == c)
        *c->kept_by = NULL;
    fd_close_all(&c->fd, 1);
    fd_close_all(c->passed, CONN_FDS_MAX);
    loop_later(c->k->loop, c);
}

static void send_with(struct conn *c, struct keeper_reply *reply, const int *fds, size_t nfds)
{
    reply->version = KEEPER_VERSION;
    int r = fd_send_msg(c->fd, reply, sizeof(*reply), fds, nfds);
    if (r < 0)
        log_debug("an answer was not taken err=%s", strerror(-r));
}

static void conn_send(struct conn *c, struct keeper_reply *reply)
{
    send_with(c, reply, NULL, 0);
}

void conn_answer(struct conn *c, struct keeper_reply *reply)
{
    conn_send(c, reply);
    conn_close(c);
}

void conn_answer_fds(struct conn *c, const int *fds, size_t nfds)
{
    struct keeper_reply reply = { 0 };
    send_with(c, &reply, fds, nfds);
    conn_close(c);
}

void conn_send_more(struct conn *c, struct keeper_reply *reply)
{
    reply->more = 1;
    conn_send(c, reply);
}

void conn_result_usage(struct conn *c, int r, const struct err *err,
                       const struct keeper_usage *usage)
{
    struct keeper *k = c->k;
    struct keeper_reply reply = { .result = r, .usage = *usage };
    if (r < 0 && err) {
        (void)snprintf(reply.what, sizeof(reply.what), "%s",
                       err->failure ? failure_name(err->failure) : "");
        /* One that has a name says all there is to say; a number's text beside it misleads. */
        bool whole = err->failure && err->failure != FAIL_NO_SPACE;
        (void)snprintf(reply.msg, sizeof(reply.msg), "%.300s%s%.80s", err->msg, whole ? "" : ": ",
                       whole ? "" : strerror(-r));
    }
    conn_answer(c, &reply);
    if (r == -ENOSPC) /* the next one may find room that deleted things still take */
        sweeper_sweep(&k->sweeper, -1);
}

void conn_result(struct conn *c, int r, const struct err *err)
{
    static const struct keeper_usage none;
    conn_result_usage(c, r, err, &none);
}

static int list_one(const char *name, void *arg)
{
    struct keeper_reply reply = { 0 };
    if (id_valid(name)) {
        (void)snprintf(reply.id, sizeof(reply.id), "%s", name);
        conn_send_more(arg, &reply);
    }
    return 0;
}

void conn_list_ids(struct conn *c, enum storage_kind kind, const char *what)
{
    struct err err = ERR_INIT;
    int r = storage_each(c->k->storage, kind, list_one, c);
    if (r < 0)
        (void)err_set(&err, -r, "cannot list %s", what);
    conn_result(c, r, &err);
}

void conn_keep(struct conn *c, struct conn **where)
{
    *where = c;
    c->kept_by = where;
}

static void start_watching(struct conn *c)
{
    c->watching = true;
    struct keeper_reply reply = { 0 };
    conn_send_more(c, &reply); /* "from here on" */
}

void server_notify_exit(struct keeper *k, const char *id, const struct keeper_usage *last)
{
    for (struct conn *c = k->conns; c; c = c->next) {
        struct keeper_reply reply = { .usage = *last };
        if (!c->watching)
            continue;
        (void)snprintf(reply.id, sizeof(reply.id), "%s", id);
        conn_send_more(c, &reply);
    }
}

static void probe_memory(struct keeper *k, struct keeper_reply *reply)
{
    struct criu criu;
    struct err err = ERR_INIT;
    if (!cgroup_host_has_unified(k->cgroups)) {
        (void)snprintf(reply->memory_text, sizeof(reply->memory_text),
                       "there is no unified cgroup hierarchy");
    } else if (criu_find(&criu, &err) < 0) {
        (void)snprintf(reply->memory_text, sizeof(reply->memory_text), "%.190s", err.msg);
    } else {
        (void)snprintf(reply->memory_text, sizeof(reply->memory_text), "CRIU %.40s %.140s",
                       criu.version, criu.from);
        reply->probe |= KEEPER_HAS_MEMORY_IMAGES;
    }
}

void server_notify_bucket(struct keeper *k, const char *id, const char *volume)
{
    for (struct conn *c = k->conns; c; c = c->next) {
        struct keeper_reply reply = { 0 };
        if (!c->watching)
            continue;
        (void)snprintf(reply.id, sizeof(reply.id), "%s", id);
        (void)snprintf(reply.volume, sizeof(reply.volume), "%s", volume);
        conn_send_more(c, &reply);
    }
}

static void look_at_room(struct keeper *k, struct keeper_room *ret_room)
{
    storage_room_left(k->storage, ret_room);
    cgroup_host_memory(k->cgroups, &ret_room->cells_memory_bytes,
                       &ret_room->cells_memory_limit_bytes);
}

static void answer_room(struct conn *c)
{
    struct keeper_reply reply = { 0 };
    struct keeper *k = c->k;
    look_at_room(k, &reply.room);
    conn_answer(c, &reply);
    if (storage_is_tight(k->storage)) /* what sandboxes deleted is free by the next question */
        sweeper_sweep(&k->sweeper, -1);
}

static void answer_probe(struct conn *c)
{
    struct keeper *k = c->k;
    struct storage_facts f;
    storage_facts(k->storage, &f);
    struct keeper_reply reply = { .probe = KEEPER_HAS_IDMAP, .init_id = ns_host_init_id(k->ns) };
    look_at_room(k, &reply.room);
    static const uint32_t flags[CGROUP_CONTROLLERS] = { KEEPER_HAS_MEMORY, KEEPER_HAS_CPU,
                                                        KEEPER_HAS_PIDS };
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        if (!cgroup_host_has(k->cgroups, (enum cgroup_controller)i))
            continue;
        reply.probe |= flags[i];
        reply.probe |= cgroup_host_is_v2(k->cgroups, (enum cgroup_controller)i)
                           ? KEEPER_HAS_CGROUP2
                           : KEEPER_HAS_CGROUP1;
    }
    if (cgroup_host_has_unified(k->cgroups))
        reply.probe |= KEEPER_HAS_FREEZER | KEEPER_HAS_KILL;
    if (k->execs)
        reply.probe |= KEEPER_HAS_PROGRAMS;
    if (k->fenced)
        reply.probe |= KEEPER_HAS_FENCE;
    probe_memory(k, &reply);
    reply.probe |= (f.quota ? KEEPER_HAS_QUOTA : 0u) |
                   (f.simple_quota ? KEEPER_HAS_SIMPLE_QUOTA : 0u) |
                   (f.own_image ? KEEPER_HAS_POOL_IMAGE : 0u);
    conn_answer(c, &reply);
}

/* ---- requests ---- */

static bool image_valid(const char *tree)
{
    size_t n = strspn(tree, "0123456789abcdef");
    return n == KEEPER_IMAGE_SIZE - 1 && tree[n] == '\0';
}

static bool limits_valid(const struct keeper_limits *l)
{
    return l->memory_bytes <= MEMORY_MAX_BYTES && l->disk_bytes <= MEMORY_MAX_BYTES &&
           l->cpu_millis <= CPU_MAX_MILLIS && l->pids <= PIDS_MAX;
}

/* Absolute, without "", "." and ".." in it, and not the root. */
static bool path_valid(const char *path)
{
    if (path[0] != '/' || !path[1])
        return false;
    for (const char *p = path; *p;) {
        size_t n = strcspn(++p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += n;
    }
    return true;
}

static const struct op *check(const struct conn *c, ssize_t n, struct err *err)
{
    const struct keeper_request *q = &c->req;
    if (n != (ssize_t)sizeof(*q) || q->version != KEEPER_VERSION) {
        (void)err_set(err, EPROTO, "not a request of version %d", KEEPER_VERSION);
        return NULL;
    }
    const struct op *op = NULL;
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (ops[i].op == q->op)
            op = &ops[i];
    if (!op || memchr(q->id, 0, sizeof(q->id)) == NULL ||
        memchr(q->image, 0, sizeof(q->image)) == NULL ||
        ((op->needs & NEEDS_ID) && !id_valid(q->id)) ||
        ((op->needs & NEEDS_IMAGE) && !image_valid(q->image)) ||
        memchr(q->parent, 0, sizeof(q->parent)) == NULL ||
        (q->parent[0] && !image_valid(q->parent)) ||
        memchr(q->volume, 0, sizeof(q->volume)) == NULL ||
        memchr(q->path, 0, sizeof(q->path)) == NULL ||
        memchr(q->point, 0, sizeof(q->point)) == NULL ||
        ((op->needs & NEEDS_POINT) && !id_valid(q->point)) ||
        (q->point[0] && !id_valid(q->point)) || (q->flags & ~(uint32_t)KNOWN_FLAGS) ||
        q->flags == KEEPER_POINT_END || ((op->needs & NEEDS_VOLUME) && !id_valid(q->volume)) ||
        ((op->needs & NEEDS_PATH) && !path_valid(q->path)) ||
        ((op->needs & NEEDS_LIMITS) && !limits_valid(&q->limits)) ||
        ((op->needs & (NEEDS_FD | NEEDS_FDS)) != 0) != (c->passed[0] >= 0) ||
        ((op->needs & NEEDS_FDS) != 0) != (c->passed[1] >= 0)) {
        (void)err_set(err, EINVAL, "a request out of shape");
        return NULL;
    }
    return op;
}

static void on_request(struct watch *w, uint32_t events)
{
    struct conn *c = container_of(w, struct conn, watch);
    if (c->kept_by || c->watching) { /* it has asked already: only its going away is news */
        if (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP | EPOLLIN))
            conn_close(c);
        return;
    }
    size_t nfds = 0;
    ssize_t n = fd_recv_msg(c->fd, &c->req, sizeof(c->req), c->passed, CONN_FDS_MAX, &nfds);
    if (n == -EAGAIN)
        return;
    if (n <= 0) {
        conn_close(c);
        return;
    }
    struct err err = ERR_INIT;
    const struct op *op = check(c, n, &err);
    if (op)
        op->fn(c);
    else
        conn_result(c, -err.code, &err);
}

struct server {
    struct keeper *k;
    struct watch watch, parent, starter;
    int fd;
};

static void on_accept(struct watch *w, uint32_t events)
{
    struct server *s = container_of(w, struct server, watch);
    int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct ucred peer;
    socklen_t len = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
        (peer.uid != 0 && peer.uid != s->k->client_uid)) {
        log_warn("refused a connection uid=%u", peer.uid);
        (void)close(fd);
        return;
    }
    struct timeval limit = { .tv_sec = SEND_TIMEOUT_S };
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    struct conn *c = calloc(1, sizeof(*c));
    if (!c) {
        (void)close(fd);
        return;
    }
    c->k = s->k;
    c->fd = fd;
    c->passed[0] = c->passed[1] = -1;
    c->watch = (struct watch){ -1, on_request };
    if (loop_add(s->k->loop, &c->watch, fd, EPOLLIN | EPOLLRDHUP) < 0) {
        (void)close(fd);
        free(c);
        return;
    }
    c->next = s->k->conns;
    s->k->conns = c;
}

static void tick(void *arg)
{
    cells_tick(arg);
}

static void on_parent_gone(struct watch *w, uint32_t events)
{
    struct server *s = container_of(w, struct server, parent);
    loop_stop(s->k->loop);
}

/* A filtered process cannot make another. The next keeper does: our launcher starts it when we die by a signal, while an
 * exit would mean that starting us again does not help. */
static void on_starter_gone(struct watch *w, uint32_t events)
{
    struct server *s = container_of(w, struct server, starter);
    log_error("the process that starts CRIU was killed; the keeper ends and is started again");
    starter_end(&s->k->starter);
    (void)raise(SIGKILL);
}

int server_run(struct keeper *k, int listen_fd, int parent_fd, struct err *err)
{
    struct server s = {
        k, { -1, on_accept }, { -1, on_parent_gone }, { -1, on_starter_gone }, listen_fd
    };
    int r = loop_add(k->loop, &s.watch, listen_fd, EPOLLIN);
    if (r == 0 && parent_fd >= 0)
        r = loop_add(k->loop, &s.parent, parent_fd, EPOLLIN | EPOLLHUP);
    if (r == 0)
        r = loop_add(k->loop, &s.starter, k->starter.fd, EPOLLHUP);
    if (r == 0)
        r = loop_run(k->loop, TICK_MS, tick, k);
    starter_end(&k->starter);
    return r < 0 ? err_set(err, -r, "the event loop failed") : 0;
}
