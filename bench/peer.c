#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "sample.h"

#define PEER_WAIT_MS 60000

static int reap(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

/* Up to and including the first newline; then to the end, with the clock stopped. */
static int read_output(int in, double *ret_first)
{
    char text[4096];
    double first = 0;

    for (;;) {
        int r = fd_wait(in, POLLIN, PEER_WAIT_MS);
        ssize_t n;

        if (r <= 0)
            return r < 0 ? r : -ETIME;
        n = read(in, text, sizeof(text));
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        if (first == 0 && memchr(text, '\n', (size_t)n))
            first = now_us();
    }
    if (first == 0)
        return -ENODATA;
    *ret_first = first;
    return 0;
}

int peer_once(char *const argv[], int log_fd, double *ret_us, struct err *err)
{
    _cleanup_fd_ int in = -1, out = -1;
    double start = now_us(), first = 0;
    int pipes[2], r, ended;
    pid_t pid;

    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    in = pipes[0];
    out = pipes[1];
    pid = fork();
    if (pid < 0)
        return err_set(err, errno, "cannot fork");
    if (pid == 0) {
        (void)dup2(out, STDOUT_FILENO);
        (void)dup2(log_fd, STDERR_FILENO);
        (void)execv(argv[0], argv);
        _exit(127);
    }
    (void)close(take_fd(out));
    r = read_output(in, &first);
    if (r < 0)
        (void)kill(pid, SIGKILL);
    ended = reap(pid);
    if (r >= 0)
        r = ended;
    if (r < 0)
        return err_set(err, -r, "'%s' failed", argv[0]);
    *ret_us = first - start;
    return 0;
}

int peer_fork(char *const argv[], double *ret_us, struct err *err)
{
    double start = now_us();
    pid_t pid = fork();
    int r;

    if (pid < 0)
        return err_set(err, errno, "cannot fork");
    if (pid == 0) {
        (void)execv(argv[0], argv);
        _exit(127);
    }
    r = reap(pid);
    if (r < 0)
        return err_set(err, -r, "'%s' failed", argv[0]);
    *ret_us = now_us() - start;
    return 0;
}
