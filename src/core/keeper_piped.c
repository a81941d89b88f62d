/* Requests to the keeper that last: what comes down a pipe meanwhile, and the answer behind it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/fd.h"
#include "core/keeper.h"

#define PIPE_BYTES (1024 * 1024)
#define PASSED_MAX 4 /* more than any of them takes */

int keeper_ask_piped(struct core *core, const struct keeper_request *req, const int *fds,
                     size_t nfds, int *ret_in, int *ret_fd, struct err *err)
{
    int ends[2], passed[PASSED_MAX];
    if (nfds >= PASSED_MAX)
        return err_set(err, EINVAL, "cannot pass %zu descriptors", nfds);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    (void)fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES); /* a smaller one works too */
    if (nfds)
        memcpy(passed, fds, nfds * sizeof(*fds));
    passed[nfds] = ends[1];
    int r = keeper_ask_begin(core, req, passed, nfds + 1, ret_fd, err);
    (void)close(ends[1]);
    if (r < 0)
        (void)close(ends[0]);
    else
        *ret_in = ends[0];
    return r;
}

int keeper_ask_finish(int fd, unsigned wait_s, const char *doing, struct keeper_reply *ret_reply,
                      struct err *err)
{
    const struct timeval wait = { .tv_sec = (time_t)wait_s }; /* 0 is the kernel's word for ever */
    struct keeper_reply reply;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    if (keeper_ask_next(fd, &reply) < 0)
        return err_fail(err, FAIL_KEEPER_UNAVAILABLE,
                        "warren-keeper went away while it %s; try again", doing);
    int r = keeper_ask_result(&reply, err);
    if (r >= 0 && ret_reply)
        *ret_reply = reply;
    return r;
}
