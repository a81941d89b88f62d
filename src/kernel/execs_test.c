/* Real processes with ids of a cell's, seen by the real kernel. */
#include "kernel/execs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"

/* No daemon's: they begin at the low end. Nor another run's of this: every kernel has one tracepoint. */
#define BASE (0x40000000u + ((uint32_t)getpid() % 0x1000 << 17))

static struct execs *open_or_skip(void)
{
    struct err err = ERR_INIT;
    struct execs *x = NULL;
    if (geteuid() != 0)
        check_skip("BPF is root's");
    int r = execs_new(&x, &err);
    if (r == -EPERM || r == -ENOSYS || r == -ENOENT)
        check_skip("this kernel has no tracepoints, or lets nobody use them");
    CHECK_OK(r);
    return x;
}

static void run_as(uint32_t uid, const char *path)
{
    pid_t pid = fork();
    CHECK_OK(pid);
    if (pid == 0) {
        if (setgid(uid) == 0 && setuid(uid) == 0)
            (void)execl(path, path, NULL);
        _exit(1);
    }
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

static const struct execs_program *find(const struct execs_program *p, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(p[i].path, path) == 0)
            return &p[i];
    return NULL;
}

TEST(counts_by_cell)
{
    _cleanup_(execs_freep) struct execs *x = open_or_skip();
    struct execs_program out[8];
    int64_t before = clock_now_ms();
    execs_begin(x, BASE, "a");
    execs_begin(x, BASE + 0x10000, "b");
    run_as(BASE, "/bin/true");
    run_as(BASE + 1000, "/bin/true");
    run_as(BASE + 65535, "/bin/false");
    run_as(BASE + 0x10000, "/bin/true");
    run_as(0, "/bin/true");
    size_t n = execs_list(x, "a", out, 8);
    CHECK_EQ(n, 2);
    const struct execs_program *p = find(out, n, "/bin/true");
    CHECK(p);
    CHECK_EQ(p->count, 2);
    CHECK(p->first_ms >= before - 1000 && p->last_ms >= p->first_ms);
    CHECK(find(out, n, "/bin/false"));
    CHECK_EQ(execs_list(x, "b", out, 8), 1);
    CHECK_EQ(out[0].count, 1);
}

TEST(an_ended_cell_is_remembered_and_not_added_to)
{
    _cleanup_(execs_freep) struct execs *x = open_or_skip();
    struct execs_program out[8];
    execs_begin(x, BASE, "a");
    run_as(BASE, "/bin/true");
    execs_end(x, BASE);
    run_as(BASE, "/bin/true");
    CHECK_EQ(execs_list(x, "a", out, 8), 1);
    CHECK_EQ(out[0].count, 1);
    execs_begin(x, BASE, "c"); /* the ids are another's now */
    run_as(BASE, "/bin/true");
    CHECK_EQ(execs_list(x, "a", out, 8), 1);
    CHECK_EQ(out[0].count, 1);
}

TEST(one_cell_cannot_take_all_the_room)
{
    _cleanup_(execs_freep) struct execs *x = open_or_skip();
    static struct execs_program out[2 * EXECS_PROGRAMS_MAX];
    char dir[] = "/tmp/execs-XXXXXX", path[64];
    CHECK(mkdtemp(dir));
    CHECK_OK(chmod(dir, 0755));
    execs_begin(x, BASE, "a");
    for (int i = 0; i < EXECS_PROGRAMS_MAX + 10; i++) {
        (void)snprintf(path, sizeof(path), "%s/%d", dir, i);
        CHECK_OK(symlink("/bin/true", path));
        run_as(BASE, path);
        CHECK_OK(unlink(path));
    }
    CHECK_OK(rmdir(dir));
    CHECK_EQ(execs_list(x, "a", out, ARRAY_LEN(out)), EXECS_PROGRAMS_MAX);
    CHECK_EQ(execs_list(x, "a", out, 7), 7);
}

TEST(nobody_counts)
{
    struct execs_program out[1];
    execs_begin(NULL, BASE, "a");
    execs_end(NULL, BASE);
    CHECK_EQ(execs_list(NULL, "a", out, 1), 0);
}
