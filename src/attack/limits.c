/* Memory, processes and descriptors beyond the sandbox's limits. Each attempt takes until it is
 * refused or killed; twice the limit proves that there is none. */
#include "attack/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <unistd.h>

#include "attack/shape.h"

#define MIB (1024UL * 1024)
#define ENOUGH (2 * SHAPE_MEMORY_MB * MIB)
#define PIECE (4 * MIB)
#define NETLINK_ENOUGH (4 * ENOUGH) /* where the kernel cannot count them, their bound comes late */

static void judge_bytes(struct outcome *o, unsigned long got, const char *what)
{
    if (got >= ENOUGH)
        broke(o, "%lu MiB of %s under a limit of %d MiB", got / MIB, what, SHAPE_MEMORY_MB);
    else
        held(o, "%lu MiB of %s, then: %s", got / MIB, what, strerror(errno));
}

static void run_anonymous(const struct attempt *self, struct outcome *o)
{
    unsigned long got = 0;
    for (; got < ENOUGH; got += PIECE) {
        char *p = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            break;
        memset(p, 0x5a, PIECE);
    }
    judge_bytes(o, got, "memory");
}

static unsigned long fill_fd(int fd)
{
    static char block[65536];
    unsigned long got = 0;
    ssize_t n = 0;
    memset(block, 0x5a, sizeof(block));
    while (fd >= 0 && got < ENOUGH && (n = write(fd, block, sizeof(block))) > 0)
        got += (unsigned long)n;
    return got;
}

static void run_memfd(const struct attempt *self, struct outcome *o)
{
    judge_bytes(o, fill_fd((int)syscall(SYS_memfd_create, "attack", 1)), "a file in memory");
}

static void run_shm(const struct attempt *self, struct outcome *o)
{
    int fd = open("/dev/shm/attack", O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0600);
    unsigned long got = fill_fd(fd);
    int e = errno;
    (void)unlink("/dev/shm/attack");
    errno = e;
    judge_bytes(o, got, "/dev/shm");
}

/* Pipes hold their bytes in the kernel. */
static void run_pipes(const struct attempt *self, struct outcome *o)
{
    static char block[65536];
    unsigned long got = 0;
    int fds[2], count = 0;
    for (; got < ENOUGH && pipe2(fds, O_NONBLOCK | O_CLOEXEC) == 0; count++) {
        ssize_t n;
        (void)fcntl(fds[1], F_SETPIPE_SZ, 1 << 20);
        while ((n = write(fds[1], block, sizeof(block))) > 0)
            got += (unsigned long)n;
    }
    judge_bytes(o, got, "pipes");
}

static unsigned long fill_socket(int fd)
{
    static char block[65536];
    int size = 64 << 20;
    unsigned long got = 0;
    ssize_t n;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    while ((n = send(fd, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
        got += (unsigned long)n;
    return got;
}

static void run_unix_buffers(const struct attempt *self, struct outcome *o)
{
    unsigned long got = 0;
    int fds[2];
    while (got < ENOUGH && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0)
        got += fill_socket(fds[0]);
    judge_bytes(o, got, "socket buffers");
}

/* Connections over loopback that nobody accepts. */
static void run_tcp_buffers(const struct attempt *self, struct outcome *o)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t n = sizeof(at);
    struct timeval patience = { 3, 0 };
    int size = 64 << 20, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unsigned long got = 0;
    (void)setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    if (bind(listener, (struct sockaddr *)&at, n) < 0 || listen(listener, 4096) < 0 ||
        getsockname(listener, (struct sockaddr *)&at, &n) < 0) {
        not_here(o, "no loopback: %s", strerror(errno));
        return;
    }
    while (got < ENOUGH) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
        if (fd < 0 || connect(fd, (struct sockaddr *)&at, n) < 0)
            break;
        unsigned long more = fill_socket(fd);
        got += more;
        if (more == 0)
            break;
    }
    judge_bytes(o, got, "TCP buffers");
}

/* How much waits in a netlink socket after it was asked for all interfaces until it is full. */
static unsigned long fill_netlink(int fd)
{
    static char reply[65536];
    unsigned info[16] = { 0 };
    socklen_t n = sizeof(info);
    int size = 64 << 20;
    struct {
        struct nlmsghdr head;
        struct ifinfomsg what;
    } ask = { { sizeof(ask), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 }, { 0 } };
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    (void)send(fd, &ask, sizeof(ask), 0);
    (void)recv(fd, reply, sizeof(reply),
               MSG_DONTWAIT); /* the kernel allocates as much from now on */
    for (unsigned before = 1; info[SK_MEMINFO_RMEM_ALLOC] != before;) {
        before = info[SK_MEMINFO_RMEM_ALLOC];
        for (int i = 0; i < 16; i++)
            (void)send(fd, &ask, sizeof(ask), MSG_DONTWAIT);
        if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &n) < 0)
            return 0;
    }
    return info[SK_MEMINFO_RMEM_ALLOC];
}

static void run_netlink_buffers(const struct attempt *self, struct outcome *o)
{
    struct rlimit files;
    unsigned long got = 0;
    int fd;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    while (got < NETLINK_ENOUGH && (fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0)) >= 0)
        got += fill_netlink(fd);
    int e = errno;
    (void)sleep(1); /* a bound that comes late must still come */
    if (got >= NETLINK_ENOUGH)
        broke(o, "%lu MiB of replies in netlink sockets under a limit of %d MiB", got / MIB,
              SHAPE_MEMORY_MB);
    else
        held(o, "%lu MiB of replies in netlink sockets, then: %s", got / MIB, strerror(e));
}

/* Page tables: memory that the kernel holds for a process. */
static void run_page_tables(const struct attempt *self, struct outcome *o)
{
    unsigned long got = 0; /* one page touched in each 2 MiB costs a table of 4 KiB more */
    for (; got < ENOUGH; got += 8192) {
        char *p = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            break;
        p[MIB] = 1;
    }
    judge_bytes(o, got, "page tables");
}

static void run_msgqueues(const struct attempt *self, struct outcome *o)
{
    static struct {
        long type;
        char text[8192];
    } message = { .type = 1 };
    unsigned long got = 0;
    for (long key = 1; got < ENOUGH; key++) {
        long q = syscall(SYS_msgget, key, 01000 | 0600);
        if (q < 0)
            break;
        while (syscall(SYS_msgsnd, q, &message, sizeof(message.text), 04000) == 0)
            got += sizeof(message.text);
    }
    for (long key = 1; key < 33000; key++) {
        long q = syscall(SYS_msgget, key, 0);
        if (q < 0)
            break;
        (void)syscall(SYS_msgctl, q, 0, NULL);
    }
    judge_bytes(o, got, "message queues");
}

static void run_forks(const struct attempt *self, struct outcome *o)
{
    int n = 0;
    for (; n < 4 * SHAPE_PIDS; n++) {
        pid_t child = fork();
        if (child == 0) {
            (void)pause();
            _exit(0);
        }
        if (child < 0)
            break;
    }
    int e = errno;
    (void)signal(SIGTERM, SIG_IGN);
    (void)kill(0, SIGTERM);
    if (n >= 4 * SHAPE_PIDS)
        broke(o, "%d processes under a limit of %d", n, SHAPE_PIDS);
    else
        held(o, "%d processes, then: %s", n, strerror(e));
}

static void *wait_for_ever(void *arg)
{
    for (;;)
        (void)pause();
    return arg;
}

static void run_threads(const struct attempt *self, struct outcome *o)
{
    int n = 0, r = 0;
    pthread_attr_t attr;
    pthread_t t;
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, 16384);
    while (n < 4 * SHAPE_PIDS && (r = pthread_create(&t, &attr, wait_for_ever, NULL)) == 0)
        n++;
    if (n >= 4 * SHAPE_PIDS)
        broke(o, "%d threads under a limit of %d", n, SHAPE_PIDS);
    else
        held(o, "%d threads, then: %s", n, strerror(r));
}

static void run_zombies(const struct attempt *self, struct outcome *o)
{
    int n = 0;
    for (; n < 4 * SHAPE_PIDS; n++) {
        pid_t child = fork();
        if (child == 0)
            _exit(0); /* a zombie: nobody waits for it */
        if (child < 0)
            break;
    }
    if (n >= 4 * SHAPE_PIDS)
        broke(o, "%d dead processes under a limit of %d", n, SHAPE_PIDS);
    else
        held(o, "%d dead processes count, then: %s", n, strerror(errno));
}

static void run_core(const struct attempt *self, struct outcome *o)
{
    struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
    int status = 0;
    (void)!chdir("/tmp");
    pid_t child = fork();
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &all);
        abort();
    }
    (void)waitpid(child, &status, 0);
    if (WIFSIGNALED(status) && WCOREDUMP(status))
        broke(o, "a crash was written down, by the host's pattern");
    held(o, "a crash leaves no core");
}

#define MEMORY(name_, title_, run_)                            \
    {                                                          \
        .name = "memory-" name_, .title = title_, .run = run_, \
        .flags = ATTEMPT_DEATH_HOLDS | ATTEMPT_SLOW            \
    }

/* Memory that stays when its process is killed: nothing else would fit into the sandbox. */
#define LASTING(name_, title_, run_)                                 \
    {                                                                \
        .name = "memory-" name_, .title = title_, .run = run_,       \
        .flags = ATTEMPT_DEATH_HOLDS | ATTEMPT_SLOW | ATTEMPT_SPOILS \
    }

/* clang-format off */
static const struct attempt limits[] = {
    MEMORY("anonymous", "memory beyond the limit", run_anonymous), MEMORY("memfd", "a file in memory beyond the limit", run_memfd),
    LASTING("shm", "/dev/shm beyond the limit", run_shm), MEMORY("pipes", "pipes beyond the limit", run_pipes),
    MEMORY("unix-sockets", "socket buffers beyond the limit", run_unix_buffers),
    MEMORY("tcp-sockets", "TCP buffers beyond the limit", run_tcp_buffers),
    { .name = "netlink-memory", .title = "replies that wait in netlink sockets", .run = run_netlink_buffers,
      .flags = ATTEMPT_DEATH_HOLDS | ATTEMPT_SLOW | ATTEMPT_SPOILS },
    MEMORY("page-tables", "page tables beyond the limit", run_page_tables),
    LASTING("message-queues", "message queues beyond the limit", run_msgqueues),
    { .name = "fork-bomb", .title = "processes beyond the limit", .run = run_forks, .flags = ATTEMPT_DEATH_HOLDS },
    { .name = "thread-bomb", .title = "threads beyond the limit", .run = run_threads, .flags = ATTEMPT_DEATH_HOLDS },
    { .name = "zombie-farm", .title = "dead processes beyond the limit", .run = run_zombies, .flags = ATTEMPT_DEATH_HOLDS },
    { .name = "core-dump", .title = "have a crash written down", .run = run_core },
};
/* clang-format on */

const struct group group_limits = { "limits", limits, sizeof(limits) / sizeof(limits[0]) };
