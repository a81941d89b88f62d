#include "keeper/sweeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "keeper/storage.h"

#define BATCH_MAX 64

/* Take all that is waiting, then empty the trash once for the lot. */
static _Noreturn void run(int sock, struct storage *storage)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "keeper-sweeper");
    (void)setpriority(PRIO_PROCESS, 0, 5); /* what users wait for comes first */
    storage_empty_trash(storage);
    for (;;) {
        char byte;
        int root = -1;
        size_t nfds = 0;
        ssize_t n = fd_recv_msg(sock, &byte, 1, &root, 1, &nfds);
        if (n <= 0)
            _exit(0);
        for (int i = 0; n > 0 && i < BATCH_MAX; i++) {
            if (nfds == 1)
                (void)close(root);
            if (fd_wait(sock, POLLIN, 0) <= 0)
                break;
            n = fd_recv_msg(sock, &byte, 1, &root, 1, &nfds);
        }
        storage_empty_trash(storage);
    }
}

int sweeper_start(struct sweeper *s, struct storage *storage, struct err *err)
{
    int sv[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return err_set(err, errno, "cannot make a socket pair");
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(sv[0]);
        run(sv[1], storage);
    }
    (void)close(sv[1]);
    if (pid < 0) {
        int r = err_set(err, errno, "cannot start the sweeper");
        (void)close(sv[0]);
        return r;
    }
    s->storage = storage;
    s->pid = pid;
    s->fd = sv[0];
    return 0;
}

void sweeper_sweep(struct sweeper *s, int root_fd)
{
    const char byte = 's';
    int r = fd_try_send_msg(s->fd, &byte, 1, &root_fd, root_fd >= 0 ? 1 : 0);
    if (r == -EPIPE || r == -ECONNRESET) {
        (void)waitpid(s->pid, NULL, WNOHANG);
        (void)close(take_fd(s->fd));
        if (sweeper_start(s, s->storage, NULL) == 0)
            (void)fd_try_send_msg(s->fd, &byte, 1, &root_fd, root_fd >= 0 ? 1 : 0);
    }
    /* Taken over there, or dropped here where that queue was full; the trash waits either way. */
    if (root_fd >= 0)
        (void)close(root_fd);
}
