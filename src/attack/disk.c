/* Disk space beyond the sandbox's quota, and writing to files that sandboxes share. */
#include "attack/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "attack/shape.h"

#define MIB (1024UL * 1024)
#define DIR_PATH "/tmp/attack-disk"

static unsigned next_random(void)
{
    static unsigned state = 2463534242u; /* xorshift: repeated bytes might be shared */
    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
}

/* Fill the file until it refuses or holds `most` bytes; returns the bytes. */
static unsigned long fill(int fd, unsigned long most)
{
    static unsigned block[65536 / sizeof(unsigned)];
    unsigned long got = 0;
    ssize_t n = 0;
    while (fd >= 0 && got < most) {
        for (size_t i = 0; i < sizeof(block) / sizeof(block[0]); i++)
            block[i] = next_random();
        n = write(fd, block, sizeof(block));
        if (n <= 0 || (got % (16 * MIB) == 0 && fsync(fd) < 0))
            break;
        got += (unsigned long)n;
    }
    if (fd >= 0 && n > 0 && fsync(fd) < 0)
        got /= 2;
    return got;
}

static void judge(struct outcome *o, unsigned long got, const char *what)
{
    if (got >= 2 * SHAPE_DISK_MB * MIB)
        broke(o, "%lu MiB of %s under a quota of %d MiB", got / MIB, what, SHAPE_DISK_MB);
    else
        held(o, "%lu MiB of %s, then: %s", got / MIB, what, strerror(errno));
}

static void run_fill(const struct attempt *self, struct outcome *o)
{
    int fd = open(DIR_PATH, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    unsigned long got = fill(fd, 2 * SHAPE_DISK_MB * MIB);
    int e = errno;
    (void)unlink(DIR_PATH);
    errno = e;
    judge(o, got, "data");
}

static void run_fallocate(const struct attempt *self, struct outcome *o)
{
    int fd = open(DIR_PATH, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    unsigned long got = 0;
    while (fd >= 0 && got < 2 * SHAPE_DISK_MB * MIB &&
           syscall(SYS_fallocate, fd, 0, got, 8 * MIB) == 0)
        got += 8 * MIB;
    int e = errno;
    (void)unlink(DIR_PATH);
    errno = e;
    judge(o, got, "reserved room");
}

/* Overwritten, punched and snapshotted blocks must stay in the count. */
static void run_punch(const struct attempt *self, struct outcome *o)
{
    int fd = open(DIR_PATH, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    for (int i = 0; i < 4 && fd >= 0; i++) {
        (void)lseek(fd, 0, SEEK_SET);
        if (fill(fd, 32 * MIB) < 32 * MIB)
            break;
        (void)syscall(SYS_fallocate, fd, 3 /* punch a hole, keep the size */, 4096L,
                      32 * MIB - 8192);
    }
    (void)lseek(fd, 0, SEEK_END);
    unsigned long got = fill(fd, 2 * SHAPE_DISK_MB * MIB);
    int e = errno;
    (void)unlink(DIR_PATH);
    errno = e;
    judge(o, got, "data behind holes");
}

static void run_many(const struct attempt *self, struct outcome *o)
{
    char name[64];
    static char text[2000]; /* kept in the inode's own record, where a quota may miss it */
    unsigned n = 0, most = 2 * SHAPE_DISK_MB * MIB / sizeof(text);
    time_t end = time(NULL) + 10;
    (void)mkdir(DIR_PATH "-many", 0700);
    for (; n < most && time(NULL) < end; n++) {
        (void)snprintf(name, sizeof(name), DIR_PATH "-many/%u", n);
        int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (fd < 0)
            break;
        ssize_t r = write(fd, text, sizeof(text));
        (void)close(fd);
        if (r < 0)
            break;
    }
    int e = errno;
    for (unsigned i = 0; i <= n; i++) {
        (void)snprintf(name, sizeof(name), DIR_PATH "-many/%u", i);
        (void)unlink(name);
    }
    if (n >= most)
        broke(o, "%u files of 2 KB under a quota of %d MiB", n, SHAPE_DISK_MB);
    else if (time(NULL) >= end)
        not_here(o, "too slow here: %u small files in 10 s", n);
    else
        held(o, "%u small files, then: %s", n, strerror(e));
}

/* Dirty Pipe: a page of a file that may only be read, spliced into a pipe, and then written to. */
static void run_dirty_pipe(const struct attempt *self, struct outcome *o)
{
    static char block[4096];
    char before[8] = "", after[8] = "";
    int fds[2], fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    loff_t at = 1;
    if (fd < 0 || pipe2(fds, O_CLOEXEC) < 0 || pread(fd, before, 4, 0) != 4) {
        not_here(o, "no file to try it on: %s", strerror(errno));
        return;
    }
    for (int i = 0; i < 16; i++)
        (void)!write(fds[1], block, sizeof(block));
    for (int i = 0; i < 16; i++)
        (void)!read(fds[0], block, sizeof(block));
    if (splice(fd, &at, fds[1], NULL, 1, 0) != 1 || write(fds[1], "XXX", 3) != 3 ||
        pread(fd, after, 4, 0) != 4)
        held(o, "splice: %s", strerror(errno));
    else if (memcmp(before, after, 4) != 0)
        broke(o, "the kernel has Dirty Pipe: a file was changed through the page cache");
    else
        held(o, "the file is as it was");
}

/* clang-format off */
static const struct attempt disk[] = {
    { .name = "disk-fill", .title = "data beyond the quota", .run = run_fill, .flags = ATTEMPT_SLOW | ATTEMPT_DEATH_HOLDS },
    { .name = "disk-reserve", .title = "reserved room beyond the quota", .run = run_fallocate },
    { .name = "disk-punch", .title = "data, holes, and data again", .run = run_punch, .flags = ATTEMPT_SLOW | ATTEMPT_DEATH_HOLDS },
    { .name = "disk-many-files", .title = "small files beyond the quota", .run = run_many, .flags = ATTEMPT_SLOW | ATTEMPT_DEATH_HOLDS },
    { .name = "dirty-pipe", .title = "write a file through the page cache", .run = run_dirty_pipe },
};
/* clang-format on */

const struct group group_disk = { "disk", disk, sizeof(disk) / sizeof(disk[0]) };
