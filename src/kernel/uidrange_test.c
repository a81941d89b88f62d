#include "kernel/uidrange.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

static void make_dir(char *path, const char *sub)
{
    char full[256];
    (void)snprintf(full, sizeof(full), "%s%s", path, sub);
    CHECK_OK(mkdir(full, 0700));
}

TEST(two_daemons_never_share_a_range)
{
    char registry[] = "/tmp/uidrange-XXXXXX", a[] = "/tmp/uidrun-XXXXXX",
         b[] = "/tmp/uidrun-XXXXXX";
    CHECK(mkdtemp(registry) && mkdtemp(a) && mkdtemp(b));
    make_dir(a, "/cells");
    make_dir(b, "/cells");
    struct err err = ERR_INIT;
    _cleanup_(uidrange_freep) struct uidrange_pool *pa = NULL, *pb = NULL;
    CHECK_OK(uidrange_open(registry, a, &pa, &err));
    CHECK_OK(uidrange_open(registry, b, &pb, &err));

    uint32_t xs[600], ys[600];
    for (int i = 0; i < 600; i++) {
        CHECK_OK(uidrange_take(pa, &xs[i], &err));
        CHECK_OK(uidrange_take(pb, &ys[i], &err));
    }
    for (int i = 0; i < 600; i++)
        for (int j = 0; j < 600; j++) {
            CHECK(xs[i] != ys[j]);
            CHECK(i == j || xs[i] != xs[j]);
        }
    uidrange_release_all(pa);
    uidrange_release_all(pb);
}

TEST(ranges_do_not_count_sandboxes)
{
    char registry[] = "/tmp/uidrange-XXXXXX", a[] = "/tmp/uidrun-XXXXXX";
    CHECK(mkdtemp(registry) && mkdtemp(a));
    make_dir(a, "/cells");
    struct err err = ERR_INIT;
    _cleanup_(uidrange_freep) struct uidrange_pool *p = NULL;
    CHECK_OK(uidrange_open(registry, a, &p, &err));
    uint32_t before = 0, base;
    int next = 0;
    for (int i = 0; i < 256; i++) {
        CHECK_OK(uidrange_take(p, &base, &err));
        next += base == before + UIDRANGE_SIZE;
        before = base;
    }
    CHECK(next < 32); /* one or two by chance */
    uidrange_release_all(p);
}

TEST(a_restarted_daemon_finds_its_blocks_and_the_ranges_in_use)
{
    char registry[] = "/tmp/uidrange-XXXXXX", a[] = "/tmp/uidrun-XXXXXX";
    CHECK(mkdtemp(registry) && mkdtemp(a));
    make_dir(a, "/cells");
    struct err err = ERR_INIT;
    struct uidrange_pool *p = NULL;
    uint32_t first, again;
    CHECK_OK(uidrange_open(registry, a, &p, &err));
    CHECK_OK(uidrange_take(p, &first, &err));
    uidrange_free(p);

    CHECK_OK(uidrange_open(registry, a, &p, &err));
    CHECK_OK(uidrange_adopt(p, first));
    CHECK_OK(uidrange_take(p, &again, &err));
    CHECK(again != first);
    CHECK(uidrange_adopt(p, 1000) < 0);
    uidrange_release_all(p);
    uidrange_free(p);
}
