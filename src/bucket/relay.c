#include "bucket/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "net/address.h"
#include "net/policy.h"

#define CONNECTIONS_MAX 64 /* s3fs keeps about ten */
#define HELLO_MS 5000
#define CONNECT_MS 10000
#define IDLE_MS 120000
#define STACK_SIZE (256 * 1024)
#define BLOCK 65536
#define RANGES_MAX 64

enum { SOCKS_VERSION = 5, SOCKS_CONNECT = 1, SOCKS_V4 = 1, SOCKS_NAME = 3 };
enum { SOCKS_OK, SOCKS_FAILED, SOCKS_REFUSED, SOCKS_UNREACHABLE = 4 };

static const struct bucket_config *config;
static int listener;
static atomic_int connections;
static struct range opened[RANGES_MAX]; /* written before the first thread */
static size_t n_opened;

bool relay_may_ask(const struct bucket_config *c, const char *host, uint16_t port)
{
    char of_bucket[BUCKET_HOST_SIZE + BUCKET_NAME_SIZE + 1];
    (void)snprintf(of_bucket, sizeof(of_bucket), "%s.%s", c->bucket, c->host);
    return port == c->port &&
           (strcasecmp(host, c->host) == 0 || (!c->path_style && strcasecmp(host, of_bucket) == 0));
}

static int read_within(int fd, void *buf, size_t n)
{
    unsigned char *at = buf;
    for (size_t got = 0; got < n;) {
        if (fd_wait(fd, POLLIN, HELLO_MS) <= 0)
            return -ETIMEDOUT;
        ssize_t r = read(fd, at + got, n - got);
        if (r <= 0)
            return -ECONNRESET;
        got += (size_t)r;
    }
    return 0;
}

/* Whom s3fs wants to talk to. */
static int read_wish(int fd, char host[256], uint16_t *ret_port)
{
    unsigned char head[4], size, methods[255], port[2], v4[4];
    if (read_within(fd, head, 2) < 0 || head[0] != SOCKS_VERSION ||
        read_within(fd, methods, head[1]) < 0 ||
        fd_write_full(fd, (const unsigned char[]){ SOCKS_VERSION, 0 }, 2) < 0 ||
        read_within(fd, head, 4) < 0 || head[0] != SOCKS_VERSION || head[1] != SOCKS_CONNECT)
        return -EPROTO;
    if (head[3] == SOCKS_V4 && read_within(fd, v4, sizeof(v4)) == 0) {
        if (!inet_ntop(AF_INET, v4, host, 256))
            return -EPROTO;
    } else if (head[3] == SOCKS_NAME && read_within(fd, &size, 1) == 0 &&
               read_within(fd, host, size) == 0) {
        host[size] = '\0';
        if (strlen(host) != size)
            return -EPROTO;
    } else {
        return -EPROTO;
    }
    if (read_within(fd, port, sizeof(port)) < 0)
        return -EPROTO;
    *ret_port = (uint16_t)(port[0] << 8 | port[1]);
    return 0;
}

static int dial_one(const struct addrinfo *ai)
{
    _cleanup_fd_ int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, ai->ai_addr, ai->ai_addrlen) < 0) {
        int code = 0;
        socklen_t len = sizeof(code);
        if (errno != EINPROGRESS)
            return -errno;
        if (fd_wait(fd, POLLOUT, CONNECT_MS) <= 0)
            return -ETIMEDOUT;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0 || code)
            return code ? -code : -EIO;
    }
    return take_fd(fd);
}

static void read_opened(const char *list)
{
    for (const char *p = list; *p && n_opened < RANGES_MAX;) {
        p += strspn(p, ", ");
        size_t n = strcspn(p, ", ");
        if (n && range_parse(p, n, &opened[n_opened]) == 0)
            n_opened++;
        p += n;
    }
}

/* As for what sandboxes reach: public, or opened by the operator; this machine only by its address. */
static bool may_reach(const struct sockaddr *sa)
{
    struct range own[RANGES_MAX];
    struct ifaddrs *all = NULL;
    struct address to, a;
    size_t n = 0;
    if (address_from_sockaddr(sa, &to) < 0 || getifaddrs(&all) < 0)
        return false;
    for (const struct ifaddrs *i = all; i && n < RANGES_MAX; i = i->ifa_next)
        if (i->ifa_addr && address_from_sockaddr(i->ifa_addr, &a) == 0)
            own[n++] = (struct range){ a, a.bits };
    freeifaddrs(all);
    const struct policy_limits limits = { opened, n_opened, own, n };
    return policy_place_open(&limits, &to);
}

/* Each address that the name has now is judged, each time. */
static int dial(const char *host, uint16_t port)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    char service[8];
    (void)snprintf(service, sizeof(service), "%u", port);
    if (getaddrinfo(host, service, &hints, &list) != 0)
        return -EHOSTUNREACH;
    int r = -EHOSTUNREACH;
    for (const struct addrinfo *ai = list; ai && r < 0; ai = ai->ai_next)
        r = may_reach(ai->ai_addr) ? dial_one(ai) : -EACCES;
    freeaddrinfo(list);
    return r;
}

/* One way, as far as it goes now. 0: that side has said all. */
static int pass(int from, int to, char *block)
{
    ssize_t n = read(from, block, BLOCK);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 1 : -errno;
    for (ssize_t at = 0; at < n;) {
        ssize_t w = write(to, block + at, (size_t)(n - at));
        if (w < 0 && errno == EAGAIN && fd_wait(to, POLLOUT, IDLE_MS) > 0)
            continue;
        if (w < 0)
            return -errno;
        at += w;
    }
    if (n == 0)
        (void)shutdown(to, SHUT_WR);
    return n > 0;
}

static void carry(int a, int b)
{
    _cleanup_free_ char *block = malloc(BLOCK);
    struct pollfd ends[2] = { { a, POLLIN, 0 }, { b, POLLIN, 0 } };
    while (block && (ends[0].fd >= 0 || ends[1].fd >= 0)) {
        if (poll(ends, 2, IDLE_MS) <= 0)
            return;
        for (int i = 0; i < 2; i++) {
            int r = ends[i].fd >= 0 && ends[i].revents ? pass(i ? b : a, i ? a : b, block) : 1;
            if (r < 0)
                return;
            if (r == 0)
                ends[i].fd = -1;
        }
    }
}

static void serve(int fd)
{
    char host[256];
    uint16_t port;
    if (read_wish(fd, host, &port) < 0)
        return;
    int to = relay_may_ask(config, host, port) ? dial(host, port) : -EACCES;
    unsigned char code = to >= 0 ? SOCKS_OK : to == -EACCES ? SOCKS_REFUSED : SOCKS_UNREACHABLE;
    const unsigned char answer[10] = { SOCKS_VERSION, code, 0, SOCKS_V4 };
    if (fd_write_full(fd, answer, sizeof(answer)) == 0 && to >= 0) {
        (void)setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
        carry(fd, to);
    }
    if (to >= 0)
        (void)close(to);
}

static void *serve_one(void *arg)
{
    int fd = (int)(intptr_t)arg;
    serve(fd);
    (void)close(fd);
    atomic_fetch_sub(&connections, 1);
    return NULL;
}

static void *accept_all(void *arg)
{
    pthread_attr_t small;
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&small, STACK_SIZE);
    for (;;) {
        pthread_t thread;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        if (atomic_fetch_add(&connections, 1) >= CONNECTIONS_MAX ||
            pthread_create(&thread, &small, serve_one, (void *)(intptr_t)fd) != 0) {
            atomic_fetch_sub(&connections, 1);
            (void)close(fd);
        }
    }
    return NULL;
}

int relay_start(int listen_fd, const struct bucket_config *c)
{
    pthread_t thread;
    listener = listen_fd;
    config = c;
    read_opened(c->opened);
    return -pthread_create(&thread, NULL, accept_all, NULL);
}
