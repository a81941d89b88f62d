#include "init/ward.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "init/launch.h"
#include "init/poller.h"
#include "init/proc.h"
#include "wire/park.h"

#define TERMINALS_MAX PROC_LIVE_MAX
#define SOCK_FD 3
#define FIRST_FD 4096 /* above all that we have open */
#define READY_WAIT_MS 5000

static struct {
    struct proc *of[TERMINALS_MAX]; /* whose they are, in the order they are held in */
    size_t n;
    int sock; /* -1: there is no ward */
} ward = { .sock = -1 };

static struct watch *master_of(struct proc *p)
{
    return &p->drain.streams[0].watch;
}

/* ---- in the child ---- */

static int keep_only_masters(int sock)
{
    for (size_t i = 0; i < ward.n; i++)
        if (fcntl(master_of(ward.of[i])->fd, F_DUPFD_CLOEXEC, FIRST_FD + (int)i) !=
            FIRST_FD + (int)i)
            return -EMFILE;
    if (sock != SOCK_FD && dup2(sock, SOCK_FD) < 0)
        return -errno;
    if (syscall(SYS_close_range, SOCK_FD + 1, FIRST_FD - 1, 0) < 0 ||
        syscall(SYS_close_range, FIRST_FD + ward.n, ~0u, 0) < 0)
        return -errno;
    return 0;
}

static _Noreturn void hold(int sock)
{
    char byte = 'r';
    (void)prctl(PR_SET_NAME, "warren-hold");
    (void)prctl(PR_SET_DUMPABLE, 0);
    launch_forget();
    if (keep_only_masters(sock) < 0 || write(SOCK_FD, &byte, 1) != 1 ||
        read(SOCK_FD, &byte, 1) != 1)
        _exit(1);
    int fds[PARK_BATCH];
    for (size_t i = 0; i < ward.n; i += PARK_BATCH) {
        size_t k = 0;
        for (; k < PARK_BATCH && i + k < ward.n; k++)
            fds[k] = FIRST_FD + (int)(i + k);
        if (fd_send_msg(SOCK_FD, "m", 1, fds, k) < 0)
            _exit(1);
    }
    _exit(0);
}

/* ---- in init ---- */

static void find_terminals(void)
{
    ward.n = 0;
    for (struct proc *p = proc_after(0); p && ward.n < TERMINALS_MAX; p = proc_after(p->number))
        if (p->terminal && master_of(p)->fd >= 0)
            ward.of[ward.n++] = p;
}

int ward_begin(void)
{
    int sock[2];
    char byte;
    find_terminals();
    if (ward.n == 0)
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock) < 0)
        return -errno;
    pid_t pid = _Fork();
    if (pid == 0)
        hold(sock[1]);
    (void)close(sock[1]);
    if (pid < 0 || fd_wait(sock[0], POLLIN, READY_WAIT_MS) <= 0 || read(sock[0], &byte, 1) != 1) {
        if (pid > 0)
            (void)kill(pid, SIGKILL);
        (void)close(sock[0]);
        return -ECHILD;
    }
    for (size_t i = 0; i < ward.n; i++)
        poller_close(master_of(ward.of[i]));
    ward.sock = sock[0];
    return 0;
}

void ward_end(void)
{
    int fds[PARK_BATCH];
    size_t n = 0, have = 0;
    char byte = 'b';
    if (ward.sock < 0)
        return;
    if (write(ward.sock, &byte, 1) != 1)
        ward.n = 0;
    for (; have < ward.n; have += n) {
        n = 0;
        if (fd_recv_msg(ward.sock, &byte, 1, fds, PARK_BATCH, &n) != 1 || n == 0)
            break;
        for (size_t i = 0; i < n && have + i < ward.n; i++) {
            master_of(ward.of[have + i])->fd = fds[i];
            drain_listen(ward.of[have + i], feed_waits(ward.of[have + i]));
        }
    }
    (void)close(ward.sock);
    ward.sock = -1;
}
