#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

int fd_wait(int fd, short events, int timeout_ms)
{
    struct pollfd p = { .fd = fd, .events = events };
    for (;;) {
        int r = poll(&p, 1, timeout_ms);
        if (r >= 0)
            return r == 0 ? 0 : p.revents;
        if (errno != EINTR)
            return -errno;
    }
}

int fd_wait_by(int fd, short events, int64_t deadline_ms)
{
    int64_t left = deadline_ms - clock_mono_ms();
    int r = fd_wait(fd, events, left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left);
    return r == 0 ? -ETIMEDOUT : r;
}

/* After EAGAIN: poll a non-blocking descriptor. On a blocking one EAGAIN means that its own
 * limit (SO_RCVTIMEO, SO_SNDTIMEO) has passed. */
static int wait_again(int fd, short events)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -errno;
    if (!(flags & O_NONBLOCK))
        return -ETIMEDOUT;
    int r = fd_wait(fd, events, -1);
    return r < 0 ? r : 0;
}

int fd_read_full(int fd, void *p, size_t n)
{
    char *at = p;
    while (n > 0) {
        ssize_t r = read(fd, at, n);
        if (r > 0) {
            at += r;
            n -= (size_t)r;
        } else if (r == 0) {
            return -EPIPE;
        } else if (errno == EAGAIN) {
            int k = wait_again(fd, POLLIN);
            if (k < 0)
                return k;
        } else if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

/* Receive (POLLIN) or send (POLLOUT) n bytes. */
static int move_by(int sock, short way, char *at, size_t n, int64_t deadline_ms)
{
    while (n > 0) {
        int k = fd_wait_by(sock, way, deadline_ms);
        if (k < 0)
            return k;
        ssize_t r = way == POLLIN ? recv(sock, at, n, MSG_DONTWAIT)
                                  : send(sock, at, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (r == 0)
            return -EPIPE;
        if (r < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        if (r > 0) {
            at += r;
            n -= (size_t)r;
        }
    }
    return 0;
}

int fd_read_by(int sock, void *p, size_t n, int64_t deadline_ms)
{
    return move_by(sock, POLLIN, p, n, deadline_ms);
}

int fd_write_by(int sock, const void *p, size_t n, int64_t deadline_ms)
{
    return move_by(sock, POLLOUT, (char *)(uintptr_t)p, n, deadline_ms); /* only read from */
}

int fd_write_full(int fd, const void *p, size_t n)
{
    const char *at = p;
    bool is_socket = true;
    while (n > 0) {
        ssize_t r = is_socket ? send(fd, at, n, MSG_NOSIGNAL) : write(fd, at, n);
        if (r >= 0) {
            at += r;
            n -= (size_t)r;
        } else if (errno == ENOTSOCK && is_socket) {
            is_socket = false;
        } else if (errno == EAGAIN) {
            int k = wait_again(fd, POLLOUT);
            if (k < 0)
                return k;
        } else if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

int fd_set_nonblock(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -errno;
    flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

void fd_close_all(const int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

int fd_keep_only(int *fds, size_t n)
{
    const int first = STDERR_FILENO + 1;
    for (size_t i = 0; i < n; i++) { /* out of the way first, so none is overwritten */
        fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, first + (int)n);
        if (fds[i] < 0)
            return -errno;
    }
    for (size_t i = 0; i < n; i++) {
        if (dup3(fds[i], first + (int)i, O_CLOEXEC) < 0)
            return -errno;
        fds[i] = first + (int)i;
    }
    return syscall(SYS_close_range, first + (int)n, ~0U, 0) < 0 ? -errno : 0;
}

static int send_msg(int sock, const void *p, size_t n, const int *fds, size_t nfds, int flags)
{
    if (nfds > FD_PASS_MAX)
        return -EINVAL;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
    } control = { 0 };
    struct iovec iov = { .iov_base = (void *)(uintptr_t)p, .iov_len = n };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
    if (nfds) {
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * nfds);
    }
    for (;;) {
        ssize_t r = sendmsg(sock, &m, MSG_NOSIGNAL | flags);
        if (r >= 0)
            return (size_t)r == n ? 0 : -EMSGSIZE;
        int k = errno == EAGAIN && !(flags & MSG_DONTWAIT) ? wait_again(sock, POLLOUT)
                : errno == EINTR                           ? 0
                                                           : -errno;
        if (k < 0)
            return k;
    }
}

int fd_send_msg(int sock, const void *p, size_t n, const int *fds, size_t nfds)
{
    return send_msg(sock, p, n, fds, nfds, 0);
}

int fd_try_send_msg(int sock, const void *p, size_t n, const int *fds, size_t nfds)
{
    return send_msg(sock, p, n, fds, nfds, MSG_DONTWAIT);
}

ssize_t fd_recv_msg(int sock, void *p, size_t max, int *ret_fds, size_t max_fds, size_t *ret_nfds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
    } control;
    struct iovec iov = { .iov_base = p, .iov_len = max };
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.bytes,
                        .msg_controllen = sizeof(control.bytes) };
    ssize_t r;
    do
        r = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return -errno;

    size_t n = 0;
    bool too_many = (m.msg_flags & MSG_CTRUNC) != 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            if (n < max_fds) {
                ret_fds[n++] = fd;
            } else {
                too_many = true;
                (void)close(fd);
            }
        }
    }
    if (too_many || (m.msg_flags & MSG_TRUNC)) {
        fd_close_all(ret_fds, n);
        *ret_nfds = 0;
        return -EMSGSIZE;
    }
    *ret_nfds = n;
    return r;
}

ssize_t fd_read_file_at(int dirfd, const char *path, char *out, size_t size)
{
    _cleanup_fd_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;
    size_t len = 0;
    for (;;) {
        ssize_t r = read(fd, out + len, size - len);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        if (r == 0)
            break;
        len += (size_t)r;
        if (len == size)
            return -EMSGSIZE;
    }
    out[len] = '\0';
    return (ssize_t)len;
}

int fd_write_file_at(int dirfd, const char *path, const char *text)
{
    _cleanup_fd_ int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;
    size_t n = strlen(text);
    ssize_t r;
    do
        r = write(fd, text, n);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return -errno;
    return (size_t)r == n ? 0 : -EIO;
}
