/* Things that the kernel counts for all sandboxes together, unless each has ids of its own: one
 * sandbox takes all that it gets and keeps it; another then asks for a little. And plain abuse,
 * of which a neighbour should notice no more than its share of the machine. */
#include "attack/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 20000 /* of anything; the descriptor limit is over three times this */
#define TAKE_S 8
#define QUIET_S 3
#define FILTER_LEN 4096 /* the kernel's maximum */
#define MIB (1024UL * 1024)

static bool sentence(char *why, size_t n, const char *what, int e)
{
    (void)snprintf(why, n, "%s: %s", what, strerror(e));
    return false;
}

/* Call `one` until it fails, or for some seconds. */
static long take_all(int (*one)(void), long most)
{
    long n = 0;
    time_t end = time(NULL) + TAKE_S;
    while (n < most && time(NULL) < end && one() >= 0)
        n++;
    return n;
}

static bool get_some(int (*one)(void), int want, const char *what, char *why, size_t n)
{
    for (int i = 0; i < want; i++)
        if (one() < 0)
            return sentence(why, n, what, errno);
    return true;
}

/* ---- BPF's memory: every filter is compiled ---- */

static bool attach_to_socket(const struct sock_fprog *prog)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, prog, sizeof(*prog)) == 0;
}

/* Start a process that installs as many filters as one may have, and stays. */
static int filtered_process(const struct sock_fprog *prog)
{
    int ends[2], got = 0, e = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, prog) < 0)
            e = errno;
        while (e == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, prog) == 0)
            ;
        (void)!write(ends[1], &e, sizeof(e));
        for (;;)
            (void)pause();
    }
    (void)close(ends[1]);
    if (pid > 0 && read(ends[0], &e, sizeof(e)) == (ssize_t)sizeof(e))
        got = e == 0;
    (void)close(ends[0]);
    if (!got && e)
        errno = e;
    return got ? 0 : -1;
}

static int one_filter(void)
{
    static struct sock_filter code[FILTER_LEN];
    struct sock_fprog prog = { .len = FILTER_LEN, .filter = code };
    for (int i = 0; i < FILTER_LEN - 1; i++)
        code[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, (unsigned)i);
    code[FILTER_LEN - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return attach_to_socket(&prog) ? 0 : filtered_process(&prog);
}

/* ---- other shared counts ---- */

static int one_inotify(void)
{
    return inotify_init1(IN_CLOEXEC);
}

static int one_watch(void)
{
    static int fd = -1;
    static unsigned n;
    char path[64];
    if (fd < 0 && (fd = inotify_init1(IN_CLOEXEC)) < 0)
        return -1;
    (void)snprintf(path, sizeof(path), "/dev/shm/w%u", n++);
    if (mkdir(path, 0700) < 0)
        return -1;
    return inotify_add_watch(fd, path, IN_CREATE);
}

static int one_pty(void)
{
    return open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static int one_mqueue(void)
{
    static unsigned n;
    char name[64];
    (void)snprintf(name, sizeof(name), "attack-%d-%u", (int)getpid(), n++);
    return (int)syscall(SYS_mq_open, name, O_CREAT | O_RDWR, 0600, NULL);
}

static int one_aio(void)
{
    aio_context_t context = 0;
    return (int)syscall(SYS_io_setup, 1024, &context);
}

static int one_timer(void)
{
    timer_t timer;
    struct sigevent none = { .sigev_notify = SIGEV_NONE };
    return timer_create(CLOCK_MONOTONIC, &none, &timer);
}

static int one_signal(void)
{
    union sigval v = { .sival_int = 1 };
    static bool blocked;
    sigset_t set;
    if (!blocked) {
        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGRTMIN + 4);
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        blocked = true;
    }
    return sigqueue(getpid(), SIGRTMIN + 4, v);
}

static int one_process(void)
{
    pid_t child = fork();
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    return child;
}

static int one_epoll_watch(void)
{
    static int set = -1, target = -1;
    struct epoll_event ev = { .events = EPOLLIN };
    if (set < 0 && (set = epoll_create1(EPOLL_CLOEXEC)) < 0)
        return -1;
    if (target < 0)
        target = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int fd = dup(target);
    return fd < 0 ? -1 : epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev);
}

static int one_big_pipe(void)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    int size = fcntl(fds[1], F_SETPIPE_SZ, 1 << 20);
    /* Past the user's share a pipe shrinks to a page or two rather than fail. */
    return size < 65536 ? (errno = EPERM, -1) : 0;
}

static int one_usual_pipe(void)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    return fcntl(fds[1], F_GETPIPE_SZ) < 65536 ? (errno = EPERM, -1) : 0;
}

/* A descriptor in flight: sent through a socket and never received. */
static int one_in_flight(void)
{
    int fds[2], sent[100], n = 100;
    char byte = 0, room[CMSG_SPACE(sizeof(sent))];
    struct iovec iov = { &byte, 1 };
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)
    };
    memset(room, 0, sizeof(room));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        sent[i] = fds[0];
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(sent));
    memcpy(CMSG_DATA(c), sent, sizeof(sent));
    return (int)sendmsg(fds[1], &m, MSG_DONTWAIT);
}

static int one_locked(void)
{
    void *p = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? -1 : mlock(p, 16384);
}

static int one_file(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int one_lock(void)
{
    static int fd = -1;
    static off_t at;
    if (fd < 0)
        fd = open("/tmp/attack-locks", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };
    at += 2;
    return fcntl(fd, F_SETLK, &l);
}

/* A loopback connection with bytes that nobody reads: one limit bounds TCP's memory for all. */
static int tcp_pair(int *ret_fd)
{
    static int listener = -1;
    static struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t n = sizeof(at);
    if (listener < 0) {
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(listener, (struct sockaddr *)&at, n) < 0 || listen(listener, 4096) < 0 ||
            getsockname(listener, (struct sockaddr *)&at, &n) < 0)
            return -1;
    }
    *ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return *ret_fd < 0 ? -1 : connect(*ret_fd, (struct sockaddr *)&at, n);
}

static int one_tcp_buffer(void)
{
    static char block[65536];
    int fd;
    if (tcp_pair(&fd) < 0)
        return -1;
    long got = 0;
    ssize_t n;
    while (got < 4 << 20 && (n = send(fd, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
        got += n;
    return got < 65536 ? -1 : 0;
}

#define RESOURCE(name_, most_, few_, what_)                \
    static long take_##name_(void)                         \
    {                                                      \
        return take_all(one_##name_, most_);               \
    }                                                      \
    static bool get_##name_(char *why, size_t n)           \
    {                                                      \
        return get_some(one_##name_, few_, what_, why, n); \
    }

RESOURCE(filter, 12000, 4, "a filter")
RESOURCE(inotify, MOST, 4, "an inotify instance")
RESOURCE(watch, MOST, 64, "a watch")
RESOURCE(pty, 6000, 2, "a terminal")
RESOURCE(mqueue, 2000, 2, "a message queue")
RESOURCE(aio, 200, 1, "an aio context")
RESOURCE(timer, 200000, 16, "a timer")
RESOURCE(signal, 200000, 16, "a queued signal")
RESOURCE(process, 100000, 4, "a process")
RESOURCE(epoll_watch, MOST, 64, "an epoll entry")
RESOURCE(in_flight, 1000, 1, "a descriptor in flight")
RESOURCE(locked, 5000, 4, "locked memory")
RESOURCE(file, 60000, 64, "an open file")
RESOURCE(lock, 2000, 16, "a file lock")
RESOURCE(tcp_buffer, 64, 1, "a TCP connection")

static long take_pipe(void)
{
    return take_all(one_big_pipe, MOST);
}

static bool get_pipe(char *why, size_t n)
{
    return get_some(one_usual_pipe, 4, "a pipe of the usual size", why, n);
}

/* ---- plain abuse ---- */

/* Start `count` children that do `work` until their parent ends. */
static long start(int count, void (*work)(void))
{
    long n = 0;
    for (; n < count; n++) {
        pid_t child = fork();
        if (child < 0)
            break;
        if (child == 0) {
            (void)signal(SIGTERM, SIG_DFL);
            work();
            _exit(0);
        }
    }
    return n;
}

static void burn(void)
{
    for (volatile unsigned long i = 0;; i++)
        ;
}

static void fork_on(void)
{
    for (;;) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (child > 0)
            (void)waitpid(child, NULL, 0);
    }
}

static void sync_on(void)
{
    static char block[4096];
    char path[64];
    (void)snprintf(path, sizeof(path), "/tmp/attack-sync-%d", (int)getpid());
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    for (off_t at = 0;; at = (at + 4096) % (1 << 20)) {
        (void)!pwrite(fd, block, sizeof(block), at);
        (void)fsync(fd);
    }
}

static void churn(void)
{
    for (;;) {
        char *p = mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            continue;
        memset(p, 1, 32 * MIB);
        (void)munmap(p, 32 * MIB);
    }
}

static void rename_on(void)
{
    char a[64], b[64];
    (void)snprintf(a, sizeof(a), "/tmp/attack-name-%d-a", (int)getpid());
    (void)snprintf(b, sizeof(b), "/tmp/attack-name-%d-b", (int)getpid());
    int fd = open(a, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    (void)close(fd);
    for (;;) {
        (void)rename(a, b);
        (void)rename(b, a);
    }
}

static void print_on(void)
{
    static char block[65536];
    memset(block, 'x', sizeof(block)); /* a line without an end */
    (void)sleep(
        QUIET_S); /* only the latest output is kept: let the word that we hold be read first */
    while (write(2, block, sizeof(block)) > 0)
        ;
}

static void packets_on(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons(9),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    static char block[1400];
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (;;)
        (void)sendto(fd, block, sizeof(block), 0, (struct sockaddr *)&at, sizeof(at));
}

static long abuse_cpu(void)
{
    return start(16, burn);
}

static long abuse_fork(void)
{
    return start(16, fork_on);
}

static long abuse_sync(void)
{
    return start(4, sync_on);
}

static long abuse_memory(void)
{
    return start(4, churn);
}

static long abuse_rename(void)
{
    return start(4, rename_on);
}

static long abuse_output(void)
{
    return start(2, print_on);
}

static long abuse_packets(void)
{
    return start(4, packets_on);
}

/* clang-format off */
const struct hold holds[] = {
    { "bpf-jit-memory", "the memory of compiled BPF programs", take_filter, get_filter },
    { "inotify-instances", "inotify instances", take_inotify, get_inotify },
    { "inotify-watches", "inotify watches", take_watch, get_watch },
    { "terminals-all", "terminals", take_pty, get_pty },
    { "posix-queues", "POSIX message queues", take_mqueue, get_mqueue },
    { "aio-contexts", "contexts of asynchronous io", take_aio, get_aio },
    { "timers", "POSIX timers", take_timer, get_timer },
    { "queued-signals", "queued signals", take_signal, get_signal },
    { "processes-all", "processes", take_process, get_process },
    { "epoll-watches", "epoll entries", take_epoll_watch, get_epoll_watch },
    { "pipe-pages", "the pages of pipes", take_pipe, get_pipe },
    { "descriptors-in-flight", "descriptors in flight", take_in_flight, get_in_flight },
    { "locked-memory", "locked memory", take_locked, get_locked },
    { "open-files", "open files", take_file, get_file },
    { "file-locks", "file locks", take_lock, get_lock },
    { "tcp-memory", "the memory of TCP", take_tcp_buffer, get_tcp_buffer },
    { "burn-cpu", "16 processes that compute", abuse_cpu, NULL },
    { "fork-storm", "processes that start and end", abuse_fork, NULL },
    { "sync-storm", "fsync in a loop", abuse_sync, NULL },
    { "memory-churn", "memory taken and given back", abuse_memory, NULL },
    { "rename-storm", "renames in a loop", abuse_rename, NULL },
    { "output-flood", "output without a line's end", abuse_output, NULL },
    { "packet-storm", "packets over loopback", abuse_packets, NULL },
};
const size_t holds_n = sizeof(holds) / sizeof(holds[0]);
/* clang-format on */
