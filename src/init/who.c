#include "init/who.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "init/ps.h"
#include "wire/wire.h"

#define PROGRAM_SIZE 128
#define ENTRIES_BYTES 4096
#define LOOKS_MAX 20000 /* descriptors looked at */
#define SEARCH_MS 100

struct search {
    uint64_t inodes[WHO_MAX];
    char programs[WHO_MAX][PROGRAM_SIZE]; /* "": not found */
    size_t n, found;
    unsigned looks;
    int64_t until_ms;
};

static int decode(const char *payload, size_t n, struct search *s)
{
    struct wire_reader reader = { payload, n };
    struct wire_field f;
    int r;
    while ((r = wire_next(&reader, &f)) > 0) {
        if (f.tag != WIRE_T_INODE || s->n == WHO_MAX)
            return -EPROTO;
        r = wire_field_u64(&f, &s->inodes[s->n++]);
        if (r < 0)
            return r;
    }
    return r;
}

/* The program's file; a name that it gave itself is no better than none. */
static void name_program(int dir, char out[PROGRAM_SIZE])
{
    ssize_t n = readlinkat(dir, "exe", out, PROGRAM_SIZE - 1);
    out[n > 0 ? n : 0] = '\0';
}

static void look_at_fd(struct search *s, int dir, int fds, const char *name)
{
    char link[64];
    ssize_t n = readlinkat(fds, name, link, sizeof(link) - 1);
    s->looks++;
    if (n <= 0)
        return;
    link[n] = '\0';
    if (strncmp(link, "socket:[", 8) != 0)
        return;
    uint64_t inode = strtoull(link + 8, NULL, 10);
    for (size_t i = 0; i < s->n; i++)
        if (s->inodes[i] == inode && !s->programs[i][0]) {
            name_program(dir, s->programs[i]);
            s->found += s->programs[i][0] != '\0';
        }
}

static bool is_over(const struct search *s)
{
    return s->found == s->n || s->looks >= LOOKS_MAX || clock_mono_ms() >= s->until_ms;
}

static void look_through(struct search *s, int dir)
{
    _cleanup_fd_ int fds = openat(dir, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _Alignas(struct dirent64) char buf[ENTRIES_BYTES];
    ssize_t n;
    while (fds >= 0 && !is_over(s) && (n = getdents64(fds, (void *)buf, sizeof(buf))) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *e = (const struct dirent64 *)(const void *)(buf + at);
            at += e->d_reclen;
            if (e->d_name[0] != '.')
                look_at_fd(s, dir, fds, e->d_name);
        }
}

static void look_at_process(struct search *s, pid_t pid)
{
    char path[32];
    struct stat st;
    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    _cleanup_fd_ int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    s->looks++;
    if (dir < 0 || fstat(dir, &st) < 0)
        return;
    (void)setfsgid(st.st_gid);
    (void)setfsuid(st.st_uid);
    look_through(s, dir);
    (void)setfsuid(0);
    (void)setfsgid(0);
}

static int by_number(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
    return x < y ? -1 : x > y;
}

static int search(struct search *s)
{
    _cleanup_free_ pid_t *pids = NULL;
    size_t n = 0;
    int r = ps_all(&pids, &n);
    if (r < 0)
        return r;
    qsort(pids, n, sizeof(*pids), by_number);
    s->until_ms = clock_mono_ms() + SEARCH_MS;
    while (n > 0 && !is_over(s))
        look_at_process(s, pids[--n]);
    return 0;
}

void who_run(int fd, char *payload, size_t n)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(WHO_MAX * (PROGRAM_SIZE + 16));
    struct search s = { .n = 0 };
    int r = decode(payload, n, &s);
    if (r >= 0)
        r = ps_open();
    if (r >= 0)
        r = search(&s);
    for (size_t i = 0; r >= 0 && i < s.n; i++)
        r = wire_put_str(&b, WIRE_T_TEXT, s.programs[i]);
    if (r >= 0)
        (void)wire_send(fd, WIRE_OK, &b);
    else
        (void)wire_send(fd, WIRE_ERROR, NULL);
}
