/* fake_keeper - a keeper of memory only, and a small world around it, for the tests of core.
 *
 * It answers on a real socket and keeps a list of cells, so that what core does between its own
 * crash and the keeper's answers can be tested without root. A test may have it fail, drop an
 * answer, go away and come back, or let an init die. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/image.h"
#include "core/images.h"
#include "core/private.h"
#include "core/sandbox.h"
#include "wire/keeper.h"
#include "wire/unpack.h"

#define FAKE_CELLS_MAX 4096
#define FAKE_IMAGES_MAX 64
#define FAKE_UNUSED __attribute__((unused))

struct fake_cell {
    char id[ID_SIZE];
    char image[KEEPER_IMAGE_SIZE];
    char from[ID_SIZE]; /* the checkpoint whose memory it was made from; "": none */
    bool running;
    bool works; /* each reading finds that it has */
    int files;  /* stands for all that is in them */
    struct keeper_limits limits;
    uint64_t cpu_us, memory_bytes, disk_bytes;
};

struct fake_keeper {
    char path[108];
    int listen_fd, watch_fd;
    pthread_t thread;
    pthread_mutex_t lock;
    struct fake_cell cells[FAKE_CELLS_MAX];
    size_t n;
    char images[FAKE_IMAGES_MAX][KEEPER_IMAGE_SIZE];
    size_t n_images;
    char points[FAKE_IMAGES_MAX][ID_SIZE];
    int point_files[FAKE_IMAGES_MAX];
    size_t n_points;
    unsigned asked[KEEPER_OPS_END]; /* how often each operation came */
    unsigned fail_op, fail_times;   /* the next of these fail so */
    int fail_code;
    const char *fail_what;
    unsigned drop_op;        /* the next of these is done and not answered */
    int make_us;             /* how long one takes */
    bool cut;                /* a power cut took what memory checkpoints had */
    struct keeper_room room; /* all 0: not known */
};

FAKE_UNUSED static struct fake_cell *fake_find(struct fake_keeper *k, const char *id)
{
    for (size_t i = 0; i < k->n; i++)
        if (strcmp(k->cells[i].id, id) == 0)
            return &k->cells[i];
    return NULL;
}

static void fake_fail(struct keeper_reply *reply, int code, const char *what)
{
    reply->result = -code;
    (void)snprintf(reply->what, sizeof(reply->what), "%s", what);
    (void)snprintf(reply->msg, sizeof(reply->msg), "the fake keeper says %s", what);
}

static char *fake_point(struct fake_keeper *k, const char *id)
{
    for (size_t i = 0; i < k->n_points; i++)
        if (strcmp(k->points[i], id) == 0)
            return k->points[i];
    return NULL;
}

static void fake_point_put(struct fake_keeper *k, struct fake_cell *c,
                           const struct keeper_request *req, struct keeper_reply *reply)
{
    if ((req->flags & KEEPER_POINT_MEMORY) && !(c && c->running)) {
        fake_fail(reply, ESRCH, "sandbox_not_running");
        return;
    }
    k->point_files[k->n_points] = c ? c->files : 0;
    memcpy(k->points[k->n_points++], req->point, ID_SIZE);
    reply->memory_bytes = req->flags ? 4096 : 0;
    if (req->flags & KEEPER_POINT_END) {
        reply->usage.cpu_us = c->cpu_us;
        c->running = false;
    }
}

static void fake_point_rm(struct fake_keeper *k, const struct keeper_request *req)
{
    char *point = fake_point(k, req->point);
    if (!point)
        return;
    size_t at = (size_t)(point - k->points[0]) / ID_SIZE, last = --k->n_points;
    memmove(point, k->points[last], ID_SIZE);
    k->point_files[at] = k->point_files[last];
}

static void fake_box_put(struct fake_keeper *k, struct fake_cell *c,
                         const struct keeper_request *req, struct keeper_reply *reply)
{
    const char *point = fake_point(k, req->point);
    if (!point)
        fake_fail(reply, ENOENT, "checkpoint_not_found");
    if (c && point && !(req->flags & KEEPER_BOX_AHEAD))
        c->files = k->point_files[(size_t)(point - k->points[0]) / ID_SIZE];
}

static void fake_make(struct fake_keeper *k, const struct keeper_request *req,
                      struct keeper_reply *reply)
{
    struct fake_cell *c = fake_find(k, req->id);
    if (c && c->running) {
        fake_fail(reply, EEXIST, "cell_exists");
        return;
    }
    if (req->point[0] && !fake_point(k, req->point)) {
        fake_fail(reply, ENOENT, "checkpoint_not_found");
        return;
    }
    if (!c) {
        c = &k->cells[k->n++];
        c->files = 0;
    }
    assert_true(k->n <= FAKE_CELLS_MAX);
    memcpy(c->id, req->id, sizeof(c->id));
    memcpy(c->image, req->image, sizeof(c->image));
    memcpy(c->from, req->point, sizeof(c->from));
    c->limits = req->limits;
    c->running = true;
    c->cpu_us = 0;
}

static void fake_list(struct fake_keeper *k, int fd, uint32_t op)
{
    size_t n = op == KEEPER_LIST ? k->n : op == KEEPER_POINT_LIST ? k->n_points : k->n_images;
    for (size_t i = 0; i < n; i++) {
        struct keeper_reply row = { .version = KEEPER_VERSION, .more = 1 };
        if (op == KEEPER_LIST) {
            memcpy(row.id, k->cells[i].id, ID_SIZE);
            memcpy(row.image, k->cells[i].image, KEEPER_IMAGE_SIZE);
            row.running = k->cells[i].running;
        } else if (op == KEEPER_POINT_LIST) {
            memcpy(row.id, k->points[i], ID_SIZE);
            row.memory_bytes = k->cut ? 0 : 4096;
        } else {
            memcpy(row.image, k->images[i], KEEPER_IMAGE_SIZE);
        }
        (void)fd_send_msg(fd, &row, sizeof(row), NULL, 0);
    }
}

static void fake_image(struct fake_keeper *k, const struct keeper_request *req, int in,
                       struct keeper_reply *reply)
{
    char block[4096];
    ssize_t n;
    if (req->op == KEEPER_IMAGE_RM) {
        for (size_t i = 0; i < k->n_images; i++)
            if (strcmp(k->images[i], req->image) == 0)
                memcpy(k->images[i], k->images[--k->n_images], KEEPER_IMAGE_SIZE);
        return;
    }
    struct digest *hash = digest_begin();
    char diff_id[DIGEST_SIZE];
    while ((n = read(in, block, sizeof(block))) > 0) {
        reply->size_bytes += (uint64_t)n;
        CHECK_OK(digest_add(hash, block, (size_t)n));
    }
    CHECK_OK(digest_end(hash, diff_id));
    memcpy(reply->diff_id, diff_id + DIGEST_HEX, sizeof(reply->diff_id));
    memcpy(k->images[k->n_images++], req->image, KEEPER_IMAGE_SIZE);
}

static void fake_usage(struct fake_cell *c, struct keeper_reply *reply)
{
    reply->usage.disk_bytes = c->disk_bytes;
    if (!c->running)
        return;
    if (c->works)
        c->cpu_us += 1000000;
    reply->usage.cpu_us = c->cpu_us;
    reply->usage.memory_bytes = c->memory_bytes;
}

/* No archive of images ever comes here: what is imported is a root filesystem. */
static void fake_split(int out)
{
    const struct split_head head = { .kind = SPLIT_ROOTFS };
    (void)fd_write_full(out, &head, sizeof(head));
}

/* The lock is held. */
static void fake_do(struct fake_keeper *k, int fd, const struct keeper_request *req, const int *in)
{
    struct keeper_reply reply = { .version = KEEPER_VERSION };
    struct fake_cell *c = fake_find(k, req->id);
    k->asked[req->op]++;
    if (k->fail_op == req->op) {
        fake_fail(&reply, k->fail_code, k->fail_what);
        if (--k->fail_times == 0)
            k->fail_op = 0;
    } else if (req->op == KEEPER_MAKE) {
        fake_make(k, req, &reply);
    } else if (req->op == KEEPER_LIMITS && c) {
        c->limits = req->limits;
    } else if (req->op == KEEPER_STOP && c) {
        fake_usage(c, &reply);
        c->running = false;
    } else if (req->op == KEEPER_DELETE && c) {
        fake_usage(c, &reply);
        *c = k->cells[--k->n];
    } else if (req->op == KEEPER_STAT && c) {
        fake_usage(c, &reply);
    } else if (req->op == KEEPER_POINT_PUT) {
        fake_point_put(k, c, req, &reply);
    } else if (req->op == KEEPER_POINT_RM) {
        fake_point_rm(k, req);
    } else if (req->op == KEEPER_BOX_PUT) {
        fake_box_put(k, c, req, &reply);
    } else if (req->op == KEEPER_LIST || req->op == KEEPER_IMAGE_LIST ||
               req->op == KEEPER_POINT_LIST) {
        fake_list(k, fd, req->op);
    } else if (req->op == KEEPER_LAYER_PUT || req->op == KEEPER_IMAGE_RM) {
        fake_image(k, req, in[0], &reply);
    } else if (req->op == KEEPER_ROOM) {
        reply.room = k->room;
    } else if (req->op == KEEPER_SPLIT) {
        fake_split(in[1]);
    }
    int out[KEEPER_STEER_FDS];
    size_t n_out = req->op == KEEPER_STEER ? KEEPER_STEER_FDS : 0;
    for (size_t i = 0; i < n_out; i++)
        out[i] = dup(fd); /* any will do */
    if (k->drop_op == req->op)
        k->drop_op = 0;
    else
        (void)fd_send_msg(fd, &reply, sizeof(reply), out, n_out);
    fd_close_all(out, n_out);
}

static void *fake_run(void *ctx)
{
    struct fake_keeper *k = ctx;
    for (;;) {
        int fd = accept4(k->listen_fd, NULL, NULL, SOCK_CLOEXEC), in[2] = { -1, -1 };
        if (fd < 0)
            return NULL;
        struct keeper_request req;
        size_t nfds = 0;
        ssize_t n = fd_recv_msg(fd, &req, sizeof(req), in, 2, &nfds);
        if (n == sizeof(req) && req.op == KEEPER_WATCH) {
            (void)pthread_mutex_lock(&k->lock);
            if (k->watch_fd >= 0)
                (void)close(k->watch_fd);
            k->watch_fd = fd;
            k->asked[KEEPER_WATCH]++;
            (void)pthread_mutex_unlock(&k->lock);
            continue;
        }
        if (n == sizeof(req)) {
            (void)pthread_mutex_lock(&k->lock);
            int delay = req.op == KEEPER_MAKE ? k->make_us : 0;
            (void)pthread_mutex_unlock(&k->lock);
            if (delay)
                (void)usleep((useconds_t)delay);
            (void)pthread_mutex_lock(&k->lock);
            fake_do(k, fd, &req, in);
            (void)pthread_mutex_unlock(&k->lock);
        }
        fd_close_all(in, nfds);
        (void)close(fd);
    }
}

static void fake_up(struct fake_keeper *k)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    memcpy(addr.sun_path, k->path, sizeof(addr.sun_path));
    (void)unlink(k->path);
    k->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    k->watch_fd = -1;
    assert_true(bind(k->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
    assert_true(listen(k->listen_fd, 64) == 0);
    assert_true(pthread_create(&k->thread, NULL, fake_run, k) == 0);
}

static void fake_down(struct fake_keeper *k)
{
    (void)shutdown(k->listen_fd, SHUT_RDWR);
    (void)pthread_join(k->thread, NULL);
    (void)close(k->listen_fd);
    if (k->watch_fd >= 0)
        (void)close(k->watch_fd);
}

FAKE_UNUSED static void fake_fail_times(struct fake_keeper *k, unsigned op, unsigned times,
                                        int code, const char *what)
{
    (void)pthread_mutex_lock(&k->lock);
    k->fail_op = op;
    k->fail_times = times;
    k->fail_code = code;
    k->fail_what = what;
    (void)pthread_mutex_unlock(&k->lock);
}

FAKE_UNUSED static void fake_fail_next(struct fake_keeper *k, unsigned op, int code,
                                       const char *what)
{
    fake_fail_times(k, op, 1, code, what);
}

FAKE_UNUSED static void fake_drop_next(struct fake_keeper *k, unsigned op)
{
    (void)pthread_mutex_lock(&k->lock);
    k->drop_op = op;
    (void)pthread_mutex_unlock(&k->lock);
}

FAKE_UNUSED static void fake_pool(struct fake_keeper *k, uint64_t bytes, uint64_t free_bytes)
{
    (void)pthread_mutex_lock(&k->lock);
    k->room = (struct keeper_room){ .pool_bytes = bytes, .pool_free_bytes = free_bytes };
    (void)pthread_mutex_unlock(&k->lock);
}

FAKE_UNUSED static unsigned fake_asked(struct fake_keeper *k, unsigned op)
{
    (void)pthread_mutex_lock(&k->lock);
    unsigned n = k->asked[op];
    (void)pthread_mutex_unlock(&k->lock);
    return n;
}

/* 1: it runs; 0: only stored; -1: unknown. Copies it if ret_c is not NULL. */
FAKE_UNUSED static int fake_has(struct fake_keeper *k, const char *id, struct fake_cell *ret_c)
{
    (void)pthread_mutex_lock(&k->lock);
    const struct fake_cell *c = fake_find(k, id);
    int r = c ? c->running : -1;
    if (c && ret_c)
        *ret_c = *c;
    (void)pthread_mutex_unlock(&k->lock);
    return r;
}

FAKE_UNUSED static void fake_works(struct fake_keeper *k, const char *id, bool works)
{
    (void)pthread_mutex_lock(&k->lock);
    fake_find(k, id)->works = works;
    (void)pthread_mutex_unlock(&k->lock);
}

FAKE_UNUSED static void fake_write(struct fake_keeper *k, const char *id, int files)
{
    (void)pthread_mutex_lock(&k->lock);
    fake_find(k, id)->files = files;
    (void)pthread_mutex_unlock(&k->lock);
}

/* As if its inside had worked. */
FAKE_UNUSED static void fake_use(struct fake_keeper *k, const char *id, uint64_t cpu_us,
                                 uint64_t memory_bytes, uint64_t disk_bytes)
{
    (void)pthread_mutex_lock(&k->lock);
    struct fake_cell *c = fake_find(k, id);
    if (c) {
        c->cpu_us = cpu_us;
        c->memory_bytes = memory_bytes;
        c->disk_bytes = disk_bytes;
    }
    (void)pthread_mutex_unlock(&k->lock);
}

FAKE_UNUSED static size_t fake_count(struct fake_keeper *k)
{
    (void)pthread_mutex_lock(&k->lock);
    size_t n = k->n;
    (void)pthread_mutex_unlock(&k->lock);
    return n;
}

/* Its init dies, and whoever watches hears of it. */
FAKE_UNUSED static void fake_die(struct fake_keeper *k, const char *id)
{
    struct keeper_reply reply = { .version = KEEPER_VERSION, .more = 1 };
    (void)snprintf(reply.id, sizeof(reply.id), "%s", id);
    (void)pthread_mutex_lock(&k->lock);
    struct fake_cell *c = fake_find(k, id);
    if (c)
        c->running = false;
    if (k->watch_fd >= 0)
        (void)fd_send_msg(k->watch_fd, &reply, sizeof(reply), NULL, 0);
    (void)pthread_mutex_unlock(&k->lock);
}

/* ---- the world: a directory, a keeper, a core ---- */

#define WORLD_TREE "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define WORLD_KEY "warren_0123456789abcdef0123"

struct world {
    char dir[64];
    struct fake_keeper k;
    struct core *core;
};

FAKE_UNUSED static struct core *world_start(struct world *w, unsigned pool)
{
    struct err err = ERR_INIT;
    struct core_config config = {
        .data_dir = w->dir,
        .run_dir = w->dir,
        .first_key = WORLD_KEY,
        .pool_size = pool,
        .share_volumes = true,
    };
    if (core_new(&config, &w->core, &err) < 0)
        fail_msg("core_new: %s", err.msg);
    return w->core;
}

/* An image of one layer whose tree the keeper does not have to make. */
FAKE_UNUSED static void world_image(struct world *w, const char *name, const char *tree)
{
    struct layer l = { .l = { .size_bytes = 1, .media_type = OCI_LAYER } };
    struct image_config config = { .created_ms = 1 };
    struct image image;
    (void)snprintf(l.l.diff_id, sizeof(l.l.diff_id), "sha256:%s", tree);
    memcpy(l.l.chain, l.l.diff_id, sizeof(l.l.chain));
    memcpy(l.l.digest, l.l.diff_id, sizeof(l.l.digest));
    (void)snprintf(l.l.tree, sizeof(l.l.tree), "%s", tree);
    CHECK_OK(layer_record(w->core, &l, NULL));
    (void)pthread_mutex_lock(&w->core->images.lock);
    CHECK_OK(images_add_layer(&w->core->images, &l));
    (void)pthread_mutex_unlock(&w->core->images.lock);
    CHECK_OK(image_config_add(&config, l.l.diff_id, name, 1));
    char *text = image_config_text(&config);
    CHECK_OK(image_create(w->core, OWNER_DEFAULT, name, true, text, NULL, &l.l, 1, &image, NULL));
    image_config_done(&config);
    free(text);
}

/* A core on an empty directory, with an image `base`. */
FAKE_UNUSED static struct world *world_new(unsigned pool)
{
    log_set_level(LOG_ERROR);
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    (void)snprintf(w->dir, sizeof(w->dir), "/tmp/warren-test-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    (void)snprintf(w->k.path, sizeof(w->k.path), "%s/keeper.sock", w->dir);
    (void)pthread_mutex_init(&w->k.lock, NULL);
    fake_up(&w->k);
    (void)world_start(w, pool);
    world_image(w, "base", WORLD_TREE);
    return w;
}

static int world_remove(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    return remove(path);
}

FAKE_UNUSED static void world_free(struct world *w)
{
    core_free(w->core);
    fake_down(&w->k);
    (void)nftw(w->dir, world_remove, 16, FTW_DEPTH | FTW_PHYS);
    free(w);
}
DEFINE_FREEP(struct world *, world_free)

/* Stops the core as a crash would, as far as the database and the keeper can tell. */
FAKE_UNUSED static struct core *world_restart(struct world *w, unsigned pool)
{
    core_free(w->core);
    return world_start(w, pool);
}
