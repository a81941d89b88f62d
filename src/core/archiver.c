#include "core/archiver.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "core/archive_program.h"
#include "core/pace.h"

#define PIPE_BYTES (1024 * 1024)
#define STALL_MS 60000

struct archiver {
    struct file_call *call; /* reads the report */
    int fd;                 /* the archive's bytes */
    pid_t pid;
    struct pace pace; /* of its bytes */
};

bool archiver_format_known(const char *format, bool unpack)
{
    static const char *const known[] = { "auto", "tar", "tar.gz", "tar.zst", "zip" };
    for (size_t i = unpack ? 0 : 1; i < ARRAY_LEN(known); i++)
        if (strcmp(format, known[i]) == 0)
            return true;
    return false;
}

/* ---- starting it ---- */

static int start(struct core *core, struct archiver *a, const char *format, bool packs,
                 struct err *err)
{
    int data[2], report[2];

    if (pipe2(data, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    _cleanup_fd_ int ours = data[packs ? 0 : 1];
    _cleanup_fd_ int theirs = data[packs ? 1 : 0];
    (void)fcntl(ours, F_SETPIPE_SZ, PIPE_BYTES); /* a smaller one works too */
    (void)fd_set_nonblock(ours, true);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, report) < 0)
        return err_set(err, errno, "cannot make a socket pair");
    _cleanup_fd_ int told = report[0];
    _cleanup_fd_ int tells = report[1];
    const struct archive_ends ends = { .in = packs ? -1 : theirs,
                                       .out = packs ? theirs : -1,
                                       .third = file_call_fd(a->call), /* init's connection */
                                       .report = tells };
    const char *const words[] = { packs ? "pack" : "unpack", format, NULL };
    int r = archive_program_start(core, words, &ends, &a->pid, err);
    if (r < 0)
        return r;
    file_call_redirect(a->call, take_fd(told));
    a->fd = take_fd(ours);
    a->pace.grace_ms = FILE_QUIET_MS;
    return 0;
}

static int hand_over(struct core *core, struct file_call *call, const char *format, bool packs,
                     struct archiver **ret_archiver, struct err *err)
{
    _cleanup_(archiver_freep) struct archiver *a = calloc(1, sizeof(*a));
    if (!a) {
        file_call_free(call);
        return err_set(err, ENOMEM, "cannot allocate an archive");
    }
    a->fd = -1;
    a->call = call;
    int r = start(core, a, format, packs, err);
    if (r >= 0)
        *ret_archiver = take_ptr(a);
    return r;
}

int archiver_pack(struct core *core, struct file_call *call, const char *format, int hangup_fd,
                  struct archiver **ret_archiver, struct err *err)
{
    int r = file_call_check(call, hangup_fd, err);
    if (r < 0) {
        file_call_free(call);
        return r;
    }
    return hand_over(core, call, format, true, ret_archiver, err);
}

int archiver_unpack(struct core *core, struct file_call *call, const char *format,
                    struct archiver **ret_archiver, struct err *err)
{
    return hand_over(core, call, format, false, ret_archiver, err);
}

/* ---- its bytes ---- */

ssize_t archiver_read(struct archiver *a, void *out, size_t max, int hangup_fd)
{
    for (;;) {
        ssize_t n = read(a->fd, out, max);
        if (n > 0)
            a->pace.bytes += (uint64_t)n;
        if (n >= 0)
            return n;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return -errno;
        struct pollfd pf[2] = { { .fd = a->fd, .events = POLLIN },
                                { .fd = hangup_fd, .events = POLLRDHUP } };
        int64_t began = clock_mono_ms();
        int r = poll(pf, hangup_fd < 0 ? 1 : 2, pace_left(&a->pace, FILE_QUIET_MS));
        pace_note(&a->pace, began, 0);
        if (r == 0)
            return -ETIMEDOUT;
        if (r < 0 && errno != EINTR)
            return -errno;
        if (!pf[0].revents && pf[1].revents)
            return -ECANCELED;
    }
}

int archiver_write(struct archiver *a, const void *p, size_t n)
{
    const char *at = p;
    while (n > 0) {
        ssize_t done = write(a->fd, at, n);
        if (done < 0 && errno == EAGAIN) {
            int r = fd_wait(a->fd, POLLOUT, STALL_MS);
            if (r <= 0)
                return r < 0 ? r : -ETIMEDOUT;
            continue;
        }
        if (done < 0 && errno != EINTR)
            return -errno;
        if (done > 0) {
            at += done;
            n -= (size_t)done;
        }
    }
    return 0;
}

int archiver_next(struct archiver *a, int hangup_fd, struct file_event *ret_ev, struct err *err)
{
    if (a->fd >= 0)
        (void)close(a->fd);
    a->fd = -1;
    return file_next(a->call, -1, hangup_fd, ret_ev, err);
}

void archiver_free(struct archiver *a)
{
    if (!a)
        return;
    if (a->fd >= 0)
        (void)close(a->fd);
    file_call_free(a->call);
    if (a->pid > 0) {
        (void)kill(a->pid, SIGKILL); /* it is ours until it is waited for */
        while (waitpid(a->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    free(a);
}
