#include "core/archiver.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "core/private.h"

#define PIPE_BYTES (1024 * 1024)
#define STALL_MS 60000
#define HIGH_FD 16 /* above every number the program gets its descriptors under */
#define PROGRAM_MAX 32

struct archiver {
    struct file_call *call; /* reads the report */
    int fd;                 /* the archive's bytes */
    pid_t pid;
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

/* Copies with numbers out of the way of 0 to 4, where they are to go. */
static int raise_fds(const int *fds, int *ret_high, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ret_high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, HIGH_FD);
        if (ret_high[i] < 0) {
            int r = -errno;
            fd_close_all(ret_high, i);
            return r;
        }
    }
    return 0;
}

/* high: the archive's bytes, init's connection, the report; the program itself. */
static int spawn_with(const int high[4], const char *job, const char *format, bool packs,
                      pid_t *ret_pid)
{
    char program[PROGRAM_MAX];
    const char *argv[] = { "warren-archive", job, format, NULL };
    char *envp[] = { NULL };
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    sigset_t none, all;

    (void)snprintf(program, sizeof(program), "/proc/self/fd/%d", high[3]);
    if (posix_spawn_file_actions_init(&fa) != 0)
        return -ENOMEM;
    if (posix_spawnattr_init(&at) != 0) {
        (void)posix_spawn_file_actions_destroy(&fa);
        return -ENOMEM;
    }
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawnattr_setsigmask(&at, &none);
    (void)posix_spawnattr_setsigdefault(&at, &all);
    (void)posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int r = posix_spawn_file_actions_adddup2(&fa, high[0], packs ? 1 : 0);
    if (r == 0)
        r = posix_spawn_file_actions_addopen(&fa, packs ? 0 : 1, "/dev/null", O_RDWR, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&fa, high[1], 3);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&fa, high[2], 4);
    if (r == 0) /* everything else is close-on-exec */
        r = posix_spawn(ret_pid, program, &fa, &at, (char *const *)(uintptr_t)argv, envp);
    (void)posix_spawn_file_actions_destroy(&fa);
    (void)posix_spawnattr_destroy(&at);
    return -r;
}

static int start(struct core *core, struct archiver *a, const char *format, bool packs,
                 struct err *err)
{
    int data[2], report[2], high[4];

    if (core->archive_fd <= 0)
        return err_name(err, ENOENT, "not_supported",
                        "warren-archive is not installed beside warrend");
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
    const int fds[] = { theirs, file_call_fd(a->call), tells, core->archive_fd };
    int r = raise_fds(fds, high, ARRAY_LEN(fds));
    if (r < 0)
        return err_set(err, -r, "cannot hand descriptors over");
    r = spawn_with(high, packs ? "pack" : "unpack", format, packs, &a->pid);
    fd_close_all(high, ARRAY_LEN(high));
    if (r < 0) {
        a->pid = 0;
        return err_set(err, -r, "cannot start warren-archive");
    }
    file_call_redirect(a->call, take_fd(told));
    a->fd = take_fd(ours);
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
        if (n >= 0)
            return n;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return -errno;
        struct pollfd pf[2] = { { .fd = a->fd, .events = POLLIN },
                                { .fd = hangup_fd, .events = POLLRDHUP } };
        if (poll(pf, hangup_fd < 0 ? 1 : 2, -1) < 0 && errno != EINTR)
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
