#include "core/inside.h"

#include "core/fake_keeper.h"
#include "wire/wire.h"

#define ID "abcdefghijklmnopqrst"

/* A pid 1 that somebody has taken over: takes one connection, says `n` bytes, and waits. */
struct hostile {
    int listen_fd;
    const void *p;
    size_t n;
};

static void *answer(void *ctx)
{
    const struct hostile *h = ctx;
    char request[64];
    int fd = accept(h->listen_fd, NULL, NULL);
    assert_true(read(fd, request, sizeof(request)) > 0);
    (void)fd_write_full(fd, h->p, h->n);
    while (read(fd, request, sizeof(request)) > 0)
        ;
    (void)close(fd);
    return NULL;
}

static int ping(const void *p, size_t n, uint64_t *ret_procs)
{
    char dir[] = "/tmp/warren-inside-XXXXXX", path[128];
    assert_non_null(mkdtemp(dir));
    struct core core = { .run_dir = dir };
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    CHECK(snprintf(path, sizeof(path), "%s/cells", dir) > 0);
    CHECK_EQ(mkdir(path, 0700), 0);
    CHECK(snprintf(path, sizeof(path), "%s/cells/" ID, dir) > 0);
    CHECK_EQ(mkdir(path, 0700), 0);
    CHECK(snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/init.sock", path) > 0);
    struct hostile h = { socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), p, n };
    CHECK_EQ(bind(h.listen_fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    CHECK_EQ(listen(h.listen_fd, 1), 0);
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, answer, &h), 0);
    int r = inside_ping(&core, ID, ret_procs);
    (void)pthread_join(t, NULL);
    (void)close(h.listen_fd);
    (void)nftw(dir, world_remove, 16, FTW_DEPTH | FTW_PHYS);
    return r;
}

TEST(an_init_that_stalls_lies_or_shouts_costs_a_moment_only)
{
    unsigned char head[WIRE_HEADER_SIZE];
    uint64_t procs = 0;
    int64_t began = clock_mono_ms();
    CHECK_EQ(ping("abc", 3, &procs), -ETIMEDOUT);
    CHECK(clock_mono_ms() - began < 30000);

    struct wire_header h = { .type = WIRE_OK, .len = 1024 * 1024 };
    wire_header_put(head, &h);
    CHECK_EQ(ping(head, sizeof(head), &procs), -EMSGSIZE);
    h.type = WIRE_OUTPUT;
    h.len = 4;
    wire_header_put(head, &h);
    CHECK_EQ(ping(head, sizeof(head), &procs), -EPROTO);
    h = (struct wire_header){ .type = WIRE_OK };
    wire_header_put(head, &h);
    CHECK_EQ(ping(head, sizeof(head), &procs), -EPROTO); /* an OK without its number */
}

TEST(an_honest_init_says_what_runs)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(256);
    unsigned char head[WIRE_HEADER_SIZE] = { 0 };
    uint64_t procs = 0;
    CHECK_OK(buf_append(&b, head, sizeof(head)));
    CHECK_OK(wire_put_u64(&b, WIRE_T_UPTIME_MS, 5));
    CHECK_OK(wire_put_u64(&b, WIRE_T_PROCS, 3));
    struct wire_header h = { .type = WIRE_OK, .len = (uint32_t)(b.len - sizeof(head)) };
    wire_header_put((unsigned char *)b.data, &h);
    CHECK_OK(ping(b.data, b.len, &procs));
    CHECK_EQ(procs, 3);
}
