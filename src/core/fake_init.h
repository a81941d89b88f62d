/* fake_init - a sandbox's init of memory only: a socket in the right place and a thread that plays
 * a part, for the tests of core. */
#pragma once
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/check.h"
#include "core/private.h"
#include "wire/wire.h"

struct stage {
    char dir[64], cells[80], cell[112], path[128];
    int listen_fd;
    pthread_t thread;
    void (*part)(int fd, struct stage *st);
    struct core core;
    struct sandbox s;
    struct wire_header asked;
    struct buf ask;
};

static void *play(void *arg)
{
    struct stage *st = arg;
    int fd = accept(st->listen_fd, NULL, NULL);
    if (fd < 0)
        return NULL;
    if (wire_recv(fd, &st->asked, &st->ask, 5000) == 0)
        st->part(fd, st);
    (void)close(fd);
    return NULL;
}

static void stage_open(struct stage *st, void (*part)(int, struct stage *))
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    *st = (struct stage){ .dir = "/tmp/warren-test-XXXXXX",
                          .part = part,
                          .ask = BUF_INIT(WIRE_PAYLOAD_MAX),
                          .s = { .id = "abcdefghijklmnopqrst" } };
    CHECK(mkdtemp(st->dir) != NULL);
    CHECK(snprintf(st->cells, sizeof(st->cells), "%s/cells", st->dir) > 0);
    CHECK(snprintf(st->cell, sizeof(st->cell), "%s/%s", st->cells, st->s.id) > 0);
    CHECK(snprintf(st->path, sizeof(st->path), "%s/init.sock", st->cell) > 0);
    CHECK_OK(mkdir(st->cells, 0700));
    CHECK_OK(mkdir(st->cell, 0700));
    CHECK(strlen(st->path) < sizeof(sa.sun_path));
    memcpy(sa.sun_path, st->path, strlen(st->path) + 1);
    st->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_OK(bind(st->listen_fd, (struct sockaddr *)&sa, sizeof(sa)));
    CHECK_OK(listen(st->listen_fd, 8));
    st->core.run_dir = st->dir;
    CHECK_EQ(pthread_create(&st->thread, NULL, play, st), 0);
}

static void stage_close(struct stage *st)
{
    (void)shutdown(st->listen_fd, SHUT_RDWR);
    (void)pthread_join(st->thread, NULL);
    (void)close(st->listen_fd);
    (void)unlink(st->path);
    (void)rmdir(st->cell);
    (void)rmdir(st->cells);
    (void)rmdir(st->dir);
    buf_done(&st->ask);
    pairs_done(&st->s.spec.env);
}
