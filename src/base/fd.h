/* fd - whole reads and writes, and descriptors passed over a unix socket.
 *
 * Every call restarts on EINTR. The *_full calls are for peers that we trust to go on: they
 * block (or poll a non-blocking fd), and end with -ETIMEDOUT only where the socket itself has a
 * limit, which each byte renews. The *_by calls are for peers that a sandbox may hold up: their
 * deadline, in monotonic milliseconds, covers the whole call. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FD_PASS_MAX 16 /* descriptors in one message; our largest message has 8 */

int fd_read_full(int fd, void *p, size_t n);        /* 0; -EPIPE if it ended early */
int fd_write_full(int fd, const void *p, size_t n); /* 0 or -errno; never SIGPIPE on sockets */
int fd_set_nonblock(int fd, bool on);
int fd_wait(int fd, short events, int timeout_ms);         /* revents, 0 on time-out, -errno */
int fd_wait_by(int fd, short events, int64_t deadline_ms); /* revents, -ETIMEDOUT, -errno */
int fd_read_by(int sock, void *p, size_t n, int64_t deadline_ms);
int fd_write_by(int sock, const void *p, size_t n, int64_t deadline_ms);

/* One datagram (SOCK_SEQPACKET) with descriptors. fd_recv_msg returns the length, 0 at end of
 * stream, and -EMSGSIZE for a cut message; the caller owns ret_fds[0..*ret_nfds). */
int fd_send_msg(int sock, const void *p, size_t n, const int *fds, size_t nfds);
int fd_try_send_msg(int sock, const void *p, size_t n, const int *fds, size_t nfds); /* -EAGAIN */
ssize_t fd_recv_msg(int sock, void *p, size_t max, int *ret_fds, size_t max_fds, size_t *ret_nfds);
void fd_close_all(const int *fds, size_t n);
/* For a child about to do one thing: keep stdin, stdout, stderr and these, renumbered from 3 in
 * their order (the array is updated), and close everything else. -errno leaves a mess: exit. */
int fd_keep_only(int *fds, size_t n);

/* Read a small file whole and NUL-terminate it: -EMSGSIZE when it does not fit. */
ssize_t fd_read_file_at(int dirfd, const char *path, char *out, size_t size);
int fd_write_file_at(int dirfd, const char *path, const char *text); /* existing file, one write */
