#include "init/probe.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "wire/wire.h"

#define CONNECT_MS 1000
#define ANSWER_MS 3000
#define REQUEST_MAX 2048
#define LINE_MAX_LEN 256 /* of an answer: "HTTP/1.1 200 OK" is at its beginning */

struct probe {
    uint64_t port;
    char path[REQUEST_MAX / 2]; /* empty: only the connection */
};

static int decode(const char *payload, size_t n, struct probe *p)
{
    struct wire_reader reader = { payload, n };
    struct wire_field f;
    int r;
    while ((r = wire_next(&reader, &f)) > 0) {
        if (f.tag == WIRE_T_PORT)
            r = wire_field_u64(&f, &p->port);
        else if (f.tag == WIRE_T_PATH && f.n < sizeof(p->path))
            memcpy(p->path, f.p, f.n);
        else
            r = -EPROTO;
        if (r < 0)
            return r;
    }
    return r < 0 || p->port < 1 || p->port > 65535 ? -EPROTO : 0;
}

static int dial(int family, uint16_t port)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
                               .sin6_port = htons(port),
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    const struct sockaddr *sa = family == AF_INET ? (const struct sockaddr *)(const void *)&v4
                                                  : (const struct sockaddr *)(const void *)&v6;
    socklen_t len = family == AF_INET ? sizeof(v4) : sizeof(v6);
    _cleanup_fd_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, sa, len) < 0) {
        int error = 0;
        socklen_t size = sizeof(error);
        struct pollfd p = { .fd = fd, .events = POLLOUT };
        if (errno != EINPROGRESS)
            return -errno;
        if (poll(&p, 1, CONNECT_MS) <= 0)
            return -ETIMEDOUT;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 || error)
            return error ? -error : -EIO;
    }
    return take_fd(fd);
}

/* The answer's status, from its first line. */
static int ask_http(int fd, const char *path)
{
    char text[REQUEST_MAX];
    char line[LINE_MAX_LEN + 1];
    size_t have = 0;
    int64_t until = clock_mono_ms() + ANSWER_MS;
    int n = snprintf(text, sizeof(text),
                     "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                     "User-Agent: warren\r\nAccept: */*\r\n\r\n",
                     path);
    if (n < 0 || (size_t)n >= sizeof(text) || send(fd, text, (size_t)n, MSG_NOSIGNAL) != n)
        return -EIO;
    for (;;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int64_t left = until - clock_mono_ms();
        if (left <= 0 || poll(&p, 1, (int)left) <= 0)
            return -ETIMEDOUT;
        ssize_t got = recv(fd, line + have, LINE_MAX_LEN - have, 0);
        if (got <= 0)
            return -EPIPE;
        have += (size_t)got;
        line[have] = '\0';
        int status;
        if (have == LINE_MAX_LEN || strchr(line, '\n'))
            return sscanf(line, "HTTP/1.%*1[01] %3d", &status) == 1 ? status : -EPROTO;
    }
}

static int probe(const struct probe *p)
{
    static const int families[] = { AF_INET, AF_INET6 };
    int r = -ECONNREFUSED;
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        _cleanup_fd_ int fd = dial(families[i], (uint16_t)p->port);
        if (fd >= 0)
            return p->path[0] ? ask_http(fd, p->path) : 0;
        if (i == 0)
            r = fd;
    }
    return r;
}

void probe_run(int fd, char *payload, size_t n)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(256);
    struct probe p = { 0 };
    int r = decode(payload, n, &p);
    if (r == 0)
        r = probe(&p);
    int put = r >= 0 ? wire_put_u64(&b, WIRE_T_STATUS, (uint64_t)r)
                     : wire_put_u64(&b, WIRE_T_CODE, (uint64_t)-r);
    if (put >= 0 && r < 0)
        put = wire_put_str(&b, WIRE_T_WHAT, "not_ready");
    if (put >= 0)
        (void)wire_send(fd, r >= 0 ? WIRE_OK : WIRE_ERROR, &b);
}
