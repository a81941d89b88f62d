#include "keeper/task.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

struct report {
    int32_t code; /* 0, or a positive errno; a word, below zero */
    uint64_t bytes;
    int32_t failure;
    char msg[ERR_MSG_MAX];
};

/* ---- in the process ---- */

void task_say(int fd, enum task_word word)
{
    const struct report said = { .code = -(int32_t)word };
    (void)fd_write_full(fd, &said, sizeof(said));
}

int task_ready(int fd, struct err *err)
{
    const struct report ready = { .code = -TASK_READY };
    char go;
    if (fd_write_full(fd, &ready, sizeof(ready)) < 0 || fd_read_full(fd, &go, 1) < 0)
        return err_set(err, ECANCELED, "the keeper went away");
    return 0;
}

void task_end(int fd, int r, uint64_t bytes, const struct err *err)
{
    struct report rep = { .code = r < 0 ? -r : 0, .bytes = bytes };
    if (r < 0) {
        rep.failure = (int32_t)err->failure;
        (void)snprintf(rep.msg, sizeof(rep.msg), "%s", err->msg);
    }
    (void)fd_write_full(fd, &rep, sizeof(rep));
    _exit(0);
}

/* ---- in the keeper ---- */

int task_start(struct task *t, void (*work)(void *job, int fd), void *job, struct err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_set(err, errno, "cannot make a pair of sockets");
    t->pid = fork();
    if (t->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(ends[0]);
        work(job, ends[1]);
        _exit(1);
    }
    (void)close(ends[1]);
    int r = t->pid < 0 ? err_set(err, errno, "cannot start a process") : 0;
    if (r == 0)
        r = loop_add(t->k->loop, &t->watch, ends[0], EPOLLIN);
    if (r < 0)
        (void)close(ends[0]);
    t->fd = ends[0];
    return r;
}

int task_hear(const struct task *t, uint64_t *ret_bytes, struct err *err)
{
    struct report rep;
    if (fd_read_full(t->fd, &rep, sizeof(rep)) < 0 || rep.code < -TASK_ADRIFT)
        return err_set(err, ECHILD, "the process that was to do it was killed");
    if (rep.code < 0)
        return -rep.code;
    if (rep.code == 0) {
        if (ret_bytes)
            *ret_bytes = rep.bytes;
        return 0;
    }
    rep.msg[sizeof(rep.msg) - 1] = '\0';
    return err_fail_as(err, rep.code == ECHILD ? EIO : rep.code, failure_numbered(rep.failure),
                       "%s", rep.msg);
}

int task_go(const struct task *t)
{
    return fd_write_full(t->fd, "g", 1);
}

void task_done(struct task *t)
{
    (void)kill(t->pid, SIGKILL);
    (void)waitpid(t->pid, NULL, 0);
    sweeper_sweep(&t->k->sweeper, -1);
    loop_remove(t->k->loop, &t->watch);
    (void)close(t->fd);
}
