#include "init/ps.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define STAT_MAX 1024      /* 52 numbers and a name */
#define PIDS_MAX 65536     /* a listing of more than this is cut */
#define ENTRIES_BYTES 4096 /* of one getdents64: some 150 names */

static int proc_fd = -1;

int ps_open(void)
{
    proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return proc_fd < 0 ? -errno : 0;
}

/* The fields we want of those after "pid (comm) ", counted from 0 at the state. */
enum {
    AT_PPID = 1,
    AT_PGRP,
    AT_SESSION,
    AT_UTIME = 11,
    AT_STIME,
    AT_CUTIME,
    AT_CSTIME,
    AT_RSS = 21
};

static uint64_t ticks_us(uint64_t ticks)
{
    return ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

int ps_parse_stat(const char *p, size_t n, struct ps_stat *ret_stat)
{
    /* A name may hold anything, ") " too: the last parenthesis ends it. */
    const char *open = memchr(p, '(', n), *close = memrchr(p, ')', n);
    if (!open || !close || close < open || (size_t)(close - p) + 2 >= n)
        return -EPROTO;
    struct ps_stat s = { .pid = (pid_t)strtol(p, NULL, 10) };
    size_t name_n = (size_t)(close - open - 1);
    if (name_n >= sizeof(s.comm))
        name_n = sizeof(s.comm) - 1;
    memcpy(s.comm, open + 1, name_n);
    s.state = close[2];

    uint64_t v[AT_RSS + 1] = { 0 };
    const char *at = close + 3, *end = p + n;
    for (int i = 1; i <= AT_RSS; i++) {
        while (at < end && *at == ' ')
            at++;
        bool negative = at < end && *at == '-';
        if (negative)
            at++;
        if (at == end || !isdigit((unsigned char)*at))
            return -EPROTO;
        while (at < end && isdigit((unsigned char)*at))
            v[i] = v[i] * 10 + (uint64_t)(*at++ - '0');
        if (negative)
            v[i] = 0;
    }
    s.ppid = (pid_t)v[AT_PPID];
    s.pgrp = (pid_t)v[AT_PGRP];
    s.session = (pid_t)v[AT_SESSION];
    s.cpu_us = ticks_us(v[AT_UTIME] + v[AT_STIME] + v[AT_CUTIME] + v[AT_CSTIME]);
    s.rss_bytes = v[AT_RSS] * (uint64_t)sysconf(_SC_PAGESIZE);
    *ret_stat = s;
    return 0;
}

int ps_read(pid_t pid, struct ps_stat *ret_stat)
{
    char path[32], text[STAT_MAX];
    (void)snprintf(path, sizeof(path), "%d/stat", (int)pid);
    ssize_t n = fd_read_file_at(proc_fd, path, text, sizeof(text));
    return n < 0 ? (int)n : ps_parse_stat(text, (size_t)n, ret_stat);
}

ssize_t ps_args(pid_t pid, char *out, size_t size)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "%d/cmdline", (int)pid);
    _cleanup_fd_ int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, out, size);
    if (n < 0)
        return -errno;
    if (n > 0)
        out[n - 1] = '\0'; /* a process may overwrite its arguments with anything */
    return n;
}

struct pids {
    pid_t *p;
    size_t n, cap;
};

static int pids_add(struct pids *l, pid_t pid)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 64;
        pid_t *p = realloc(l->p, cap * sizeof(*p));
        if (!p)
            return -ENOMEM;
        l->p = p;
        l->cap = cap;
    }
    l->p[l->n++] = pid;
    return 0;
}

/* getdents64 itself: opendir would take 32 KiB, in each of a thousand of us. */
int ps_all(pid_t **ret_pids, size_t *ret_n)
{
    _cleanup_fd_ int fd = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct pids l = { 0 };
    _Alignas(struct dirent64) char buf[ENTRIES_BYTES];
    pid_t self = getpid();
    for (;;) {
        ssize_t n = getdents64(fd, (void *)buf, sizeof(buf));
        if (n < 0) {
            free(l.p);
            return -errno;
        }
        if (n == 0 || l.n >= PIDS_MAX)
            break;
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *e = (const struct dirent64 *)(const void *)(buf + at);
            at += e->d_reclen;
            pid_t pid = (pid_t)strtol(e->d_name, NULL, 10); /* 0 for what is not a number */
            if (pid > 0 && pid != self && pids_add(&l, pid) < 0) {
                free(l.p);
                return -ENOMEM;
            }
        }
    }
    *ret_pids = l.p;
    *ret_n = l.n;
    return 0;
}

static int by_pid(const void *va, const void *vb)
{
    const struct ps_stat *a = va, *b = vb;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

int ps_signal_tree(pid_t leader, int signo)
{
    _cleanup_free_ pid_t *pids = NULL;
    _cleanup_free_ struct ps_stat *stats = NULL;
    _cleanup_free_ bool *ours = NULL;
    size_t n, count = 0;
    int found = 0, before;
    int r = ps_all(&pids, &n);
    if (r < 0)
        return r;
    stats = calloc(n ? n : 1, sizeof(*stats));
    ours = calloc(n ? n : 1, sizeof(*ours));
    if (!stats || !ours)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (ps_read(pids[i], &stats[count]) == 0)
            count++;
    qsort(stats, count, sizeof(*stats), by_pid);
    do { /* until a pass adds nothing: numbers wrap, so a child may stand before its parent */
        before = found;
        for (size_t i = 0; i < count; i++) {
            const struct ps_stat *s = &stats[i], key = { .pid = s->ppid };
            if (ours[i])
                continue;
            const struct ps_stat *parent = bsearch(&key, stats, count, sizeof(*stats), by_pid);
            ours[i] = s->pid == leader || s->pgrp == leader || s->session == leader ||
                      (parent && ours[parent - stats]);
            found += ours[i];
        }
    } while (found > before);
    for (size_t i = 0; i < count; i++)
        if (ours[i])
            (void)kill(stats[i].pid, signo);
    return found;
}
