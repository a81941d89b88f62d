#include "attack/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define HEAD_MAX 16384
#define WAIT_MS 5000
#define SILENCE_S 14 /* longer than a deletion may take */
#define RENAME_EXCHANGE_FLAG 2

/* ---- an HTTP server that answers with the head it got ---- */

static void answer(int fd)
{
    char head[HEAD_MAX], text[HEAD_MAX + 256];
    size_t n = 0;
    struct pollfd p = { .fd = fd, .events = POLLIN };
    while (n < sizeof(head) - 1 && poll(&p, 1, WAIT_MS) == 1) {
        ssize_t r = read(fd, head + n, sizeof(head) - 1 - n);
        if (r <= 0)
            break;
        n += (size_t)r;
        head[n] = '\0';
        if (strstr(head, "\r\n\r\n"))
            break;
    }
    head[n] = '\0';
    int len = snprintf(text, sizeof(text),
                       "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                       "Set-Cookie: attack=1; Domain=localhost\r\nConnection: close\r\n\r\n%s",
                       n, head);
    if (len > 0)
        (void)!write(fd, text, (size_t)len);
    (void)close(fd);
}

static int serve(const char *port)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons((in_port_t)strtoul(port, NULL, 10)) };
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 64) < 0)
        return 1;
    (void)printf("ready\n");
    (void)fflush(stdout);
    for (int c; (c = accept(fd, NULL, NULL)) >= 0;)
        answer(c);
    return 0;
}

/* ---- a socket and a pipe in a shared directory ---- */

static struct sockaddr_un place(const char *path)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    return at;
}

static int listen_at(const char *path)
{
    struct sockaddr_un at = place(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)unlink(path);
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 8) < 0 ||
        chmod(path, 0777) < 0)
        return (void)printf("refused\t%s\n", strerror(errno)), 0;
    (void)printf("ready\n");
    (void)fflush(stdout);
    for (int c; (c = accept(fd, NULL, NULL)) >= 0;)
        (void)close(c);
    return 0;
}

static int connect_at(const char *path)
{
    struct sockaddr_un at = place(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r = connect(fd, (struct sockaddr *)&at, sizeof(at));
    (void)printf(r == 0 ? "connected\n" : "refused\t%s\n", strerror(errno));
    return 0;
}

static int fifo_read(const char *path)
{
    (void)unlink(path);
    if (mkfifo(path, 0777) < 0 || chmod(path, 0777) < 0)
        return (void)printf("refused\t%s\n", strerror(errno)), 0;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    (void)printf(fd < 0 ? "refused\n" : "ready\n");
    (void)fflush(stdout);
    (void)sleep(30);
    return 0;
}

static int fifo_write(const char *path)
{
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC); /* ENXIO: nobody reads there */
    (void)printf(fd >= 0 && write(fd, "x", 1) == 1 ? "connected\n" : "refused\t%s\n",
                 strerror(errno));
    return 0;
}

/* ---- the rest ---- */

static int reach(const char *address, const char *port)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET,
                              .sin_port = htons((in_port_t)strtoul(port, NULL, 10)) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = v4.sin_port };
    bool six = inet_pton(AF_INET, address, &v4.sin_addr) != 1;
    if (six && inet_pton(AF_INET6, address, &v6.sin6_addr) != 1)
        return 2;
    int fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval t = { .tv_sec = WAIT_MS / 1000 };
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
    int r = connect(fd, six ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4,
                    six ? sizeof(v6) : sizeof(v4));
    char text[512] = "";
    static const char ask[] =
        "GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    if (r == 0 && write(fd, ask, sizeof(ask) - 1) > 0) {
        ssize_t n = read(fd, text, sizeof(text) - 1);
        text[n > 0 ? n : 0] = '\0';
    }
    text[strcspn(text, "\r\n")] = '\0';
    (void)printf("%s\t%s\n", r == 0 ? "connected" : "refused", r == 0 ? text : strerror(errno));
    return 0;
}

/* Make directories deeper than any path is long. */
static int deep(const char *top, const char *count)
{
    long n = 0, most = strtol(count, NULL, 10);
    if (mkdir(top, 0700) < 0 || chdir(top) < 0)
        return 1;
    while (n < most && mkdir("d", 0700) == 0 && chdir("d") == 0)
        n++;
    (void)printf("%ld\n", n);
    return 0;
}

/* Swap a directory and a link out of it as fast as possible. */
static int swap(const char *one, const char *two)
{
    for (time_t end = time(NULL) + 20; time(NULL) < end;)
        for (int i = 0; i < 1000; i++)
            (void)syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, two, RENAME_EXCHANGE_FLAG);
    return 0;
}

/* Start a process that left its session, parent and group, and ignores signals. */
static int orphan(const char *path)
{
    if (fork() == 0) {
        (void)setsid();
        if (fork() == 0) {
            (void)setsid();
            (void)prctl(PR_SET_NAME, "attack-orphan", 0, 0, 0);
            sigset_t all;
            (void)sigfillset(&all);
            (void)sigprocmask(SIG_BLOCK, &all, NULL);
            int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
            (void)dprintf(fd, "%d\n", (int)getpid());
            (void)close(fd);
            for (;;)
                (void)sleep(60);
        }
        _exit(0);
    }
    (void)sleep(20);
    return 0;
}

/* Leave init no descriptors, one processor and the lowest priority. A child undoes it after some
 * seconds: a successful attack must not leave a sandbox that cannot be deleted. */
static int silence(const char *what)
{
    uint64_t now[2] = { 0, 0 }, none[2] = { 0, 0 };
    unsigned long one = 1;
    int priority = 0;
    long limits = syscall(SYS_prlimit64, 1, RLIMIT_NOFILE, NULL, now);
    none[1] = now[1];
    pid_t child = fork();
    if (child == 0) {
        (void)setsid();
        (void)close(0);
        (void)close(1);
        (void)close(2);
        (void)sleep(SILENCE_S);
        (void)syscall(SYS_prlimit64, 1, RLIMIT_NOFILE, now, NULL);
        _exit(0);
    }
    if (limits == 0)
        limits = syscall(SYS_prlimit64, 1, RLIMIT_NOFILE, none, NULL);
    long affinity = syscall(SYS_sched_setaffinity, 1, sizeof(one), &one);
    long idle = syscall(SYS_sched_setscheduler, 1, 5 /* SCHED_IDLE */, &priority);
    (void)printf("%s: %s\n", what,
                 limits == 0 || affinity == 0 || idle == 0 ? "silenced" : "out of reach");
    return 0;
}

int peer_main(int argc, char **argv)
{
    static const struct {
        const char *word;
        int (*one)(const char *a);
        int (*two)(const char *a, const char *b);
    } words[] = {
        { "serve", serve, NULL },         { "silence", silence, NULL },
        { "listen", listen_at, NULL },    { "connect", connect_at, NULL },
        { "fifo-read", fifo_read, NULL }, { "fifo-write", fifo_write, NULL },
        { "orphan", orphan, NULL },       { "reach", NULL, reach },
        { "deep", NULL, deep },           { "swap", NULL, swap },
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i].word, argv[0]) == 0) {
            if (words[i].one && argc == 2)
                return words[i].one(argv[1]);
            if (words[i].two && argc == 3)
                return words[i].two(argv[1], argv[2]);
        }
    return 2;
}
