#include "broker/certfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "confine/calls.h"
#include "confine/paths.h"
#include "confine/rights.h"

#define LOG_MODULE "tls"
#define LOOK_MS 2000
#define FILE_SIZE (64 * 1024)
#define SELF "/proc/self/exe"

/* ---- the process that reads ---- */

struct seen {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec changed;
};

/* Is it another than the one seen last? A link is followed: renewals are often a link set anew. */
static bool has_changed(const char *path, struct seen *last)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return false; /* being replaced */
    struct seen now = { st.st_dev, st.st_ino, st.st_size, st.st_mtim };
    bool same = now.dev == last->dev && now.ino == last->ino && now.size == last->size &&
                now.changed.tv_sec == last->changed.tv_sec &&
                now.changed.tv_nsec == last->changed.tv_nsec;
    *last = now;
    return !same;
}

static int add_file(int to, const char *path)
{
    static char text[FILE_SIZE];
    ssize_t n = fd_read_file_at(AT_FDCWD, path, text, sizeof(text));
    int r = n < 0 ? (int)n : fd_write_full(to, text, (size_t)n);
    explicit_bzero(text, sizeof(text));
    return r;
}

static int send_both(const char *cert_path, const char *key_path, int fd)
{
    _cleanup_fd_ int both = memfd_create("certificate", MFD_CLOEXEC);
    if (both < 0 || add_file(both, cert_path) < 0 || add_file(both, key_path) < 0)
        return -EIO;
    return fd_send_msg(fd, "C", 1, &both, 1);
}

/* Keep root's right to read, and drop every other capability, every other call and every path to
 * write. All paths stay readable: the certificates are often links that each renewal changes. */
static int keep_reading(void)
{
    static const int reading[] = { CAP_DAC_READ_SEARCH };
    static const struct paths_rule anywhere[] = { { "/", false } };
    static const char *const calls[] = {
        "openat",       "newfstatat",      "fstat",
        "read",         "pread64",         "write",
        "close",        "lseek",           "fcntl",
        "memfd_create", "sendmsg",         "sendto",
        "poll",         "ppoll",           "brk",
        "mmap",         "munmap",          "mremap",
        "mprotect",     "madvise",         "futex",
        "getrandom",    "clock_gettime",   "clock_nanosleep",
        "gettimeofday", "rt_sigaction",    "rt_sigreturn",
        "getpid",       "restart_syscall", "exit",
        "exit_group",
    };
    int r = rights_bound(NULL, 0, NULL);
    if (r >= 0)
        r = rights_hold(reading, ARRAY_LEN(reading), NULL);
    if (r >= 0)
        r = paths_confine(anywhere, ARRAY_LEN(anywhere), true, NULL);
    return r < 0 ? r : calls_allow(calls, ARRAY_LEN(calls), NULL);
}

int certfiles_serve(const char *cert_path, const char *key_path, int fd)
{
    struct seen cert = { 0 }, key = { 0 };
    (void)signal(SIGPIPE, SIG_IGN);
    int r = fd_keep_only(&fd, 1); /* what the broker was given is not ours */
    if (r >= 0)
        r = keep_reading();
    if (r < 0)
        return r;
    for (;;) {
        bool other_cert = has_changed(cert_path, &cert);
        if (has_changed(key_path, &key) || other_cert)
            if (send_both(cert_path, key_path, fd) < 0)
                log_warn("the certificate's files changed and cannot be read; looking again at "
                         "the next change");
        struct pollfd p = { fd, 0, 0 };
        if (poll(&p, 1, LOOK_MS) != 0 && (p.revents & (POLLHUP | POLLERR)))
            return 0;
    }
}

/* ---- the broker's side ---- */

int certfiles_start(const char *cert_path, const char *key_path, int *ret_fd, struct err *err)
{
    int pair[2];
    char number[16];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_set(err, errno, "cannot make a pair of sockets");
    (void)snprintf(number, sizeof(number), "%d", pair[1]);
    const char *argv[] = { "warren-certs", "--serve-fd", number,   "--tls-cert",
                           cert_path,      "--tls-key",  key_path, NULL };
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (fcntl(pair[1], F_SETFD, 0) == 0)
            (void)execv(SELF, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int r = pid < 0 ? -errno : 0;
    (void)close(pair[1]);
    if (r < 0) {
        (void)close(pair[0]);
        return err_set(err, -r, "cannot start what reads the certificate's files");
    }
    *ret_fd = pair[0];
    return 0;
}

static void on_files(struct watch *w, uint32_t events)
{
    struct certfiles *c = container_of(w, struct certfiles, watch);
    char byte;
    int fd = -1;
    size_t n = 0;
    ssize_t r = fd_recv_msg(c->fd, &byte, 1, &fd, 1, &n);
    if (r == -EAGAIN)
        return;
    if (r <= 0) {
        log_warn("nobody looks at the certificate's files any more; a new one is used after a "
                 "restart of the broker");
        certfiles_done(c);
    }
    if (n)
        c->fn(c->arg, fd);
}

int certfiles_watch(struct certfiles *c, struct loop *loop, int fd, void (*fn)(void *arg, int fd),
                    void *arg, struct err *err)
{
    *c = (struct certfiles){
        .loop = loop, .watch = { -1, on_files }, .fd = fd, .fn = fn, .arg = arg
    };
    int r = fd_set_nonblock(fd, true);
    if (r >= 0)
        r = loop_add(loop, &c->watch, fd, EPOLLIN);
    return r < 0 ? err_set(err, -r, "cannot watch the certificate's files") : 0;
}

void certfiles_done(struct certfiles *c)
{
    if (!c->loop || c->fd < 0)
        return;
    loop_remove(c->loop, &c->watch);
    (void)close(c->fd);
    c->fd = -1;
}
