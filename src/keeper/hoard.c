#include "keeper/hoard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "keeper/cell.h"
#include "kernel/netlinks.h"

#define LOG_MODULE "hoard"
#define LOOK_NS 100000000
#define GROWN_BYTES (64ull << 20) /* since the last look at the cells */
#define MOST_BYTES ((uint64_t)NETLINKS_MOST * NETLINKS_BUFFER)

static struct hoard {
    struct keeper *k;
    struct watch watch;
    int meminfo;
    uint64_t seen_bytes;
} hoard;

/* What the kernel holds for itself and cannot give back; 0: unknown. */
static uint64_t kernel_bytes(void)
{
    char text[4096];
    ssize_t n = pread(hoard.meminfo, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, "\nSUnreclaim:");
    return at ? strtoull(at + strlen("\nSUnreclaim:"), NULL, 10) << 10 : 0;
}

/* The sum of a column of /proc/<pid>/net/netlink, which shows a cell's own sockets: the namespace is its own. */
static uint64_t held_bytes(pid_t pid)
{
    char path[48], line[256];
    uint64_t sum = 0, rmem;
    (void)snprintf(path, sizeof(path), "/proc/%d/net/netlink", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%*s %*s %*s %*s %" SCNu64, &rmem) == 1)
            sum += rmem;
    if (f)
        (void)fclose(f);
    return sum;
}

static void look_at(struct cell *c)
{
    uint64_t bytes = c->state == CELL_RUNNING ? held_bytes(c->record.pid) : 0;
    if (bytes <= MOST_BYTES)
        return;
    log_warn("it is ended: its netlink sockets hold too much bytes=%" PRIu64 " sandbox=%s", bytes,
             c->id);
    /* Not cgroup.kill of its work: Linux 6.18 then kills whatever init starts there later, too. */
    (void)pidfd_send_signal(c->pidfd, SIGKILL, NULL, 0);
}

static void on_timer(struct watch *w, uint32_t events)
{
    uint64_t times, now = kernel_bytes();
    if (read(w->fd, &times, sizeof(times)) < 0)
        return;
    if (now < hoard.seen_bytes)
        hoard.seen_bytes = now;
    if (now - hoard.seen_bytes < GROWN_BYTES)
        return;
    hoard.seen_bytes = now;
    for (size_t b = 0; b < CELL_BUCKETS; b++)
        for (struct cell *c = hoard.k->cells[b]; c; c = c->next)
            look_at(c);
}

int hoard_watch(struct keeper *k, struct err *err)
{
    const struct itimerspec often = { { 0, LOOK_NS }, { 0, LOOK_NS } };
    hoard = (struct hoard){ .k = k, .watch = { .fd = -1, .fn = on_timer } };
    hoard.meminfo = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    hoard.seen_bytes = kernel_bytes();
    if (hoard.seen_bytes == 0)
        return err_set(err, ENOTSUP, "/proc/meminfo does not say what the kernel holds");
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0 || timerfd_settime(fd, 0, &often, NULL) < 0)
        return err_set(err, errno, "cannot make a timer");
    int r = loop_add(k->loop, &hoard.watch, fd, EPOLLIN);
    return r < 0 ? err_set(err, -r, "cannot watch a timer") : 0;
}
