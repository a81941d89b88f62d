#include "cli/attack/wire.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/attack/attack.h"

#define TOTAL_MS 20000
#define HOST_MAX 256

const char *wire_host(const struct attack *a, char *out, size_t n)
{
    const char *at = a->url ? strstr(a->url, "://") : NULL;
    at = at ? at + 3 : "warren";
    (void)snprintf(out, n, "%.*s", (int)strcspn(at, "/"), at);
    return out;
}

static int open_unix(const char *path)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
        (void)close(fd);
        return -errno;
    }
    return fd < 0 ? -errno : fd;
}

int wire_open(const struct attack *a)
{
    char host[HOST_MAX];
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    if (!a->url)
        return open_unix(client_where(a->admin));
    (void)wire_host(a, host, sizeof(host));
    char *port = strrchr(host, ':');
    if (port)
        *port++ = '\0';
    if (getaddrinfo(host, port ? port : "80", &hints, &found) != 0)
        return -EHOSTUNREACH;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r = fd < 0 ? -errno : connect(fd, found->ai_addr, found->ai_addrlen) < 0 ? -errno : fd;
    if (r < 0 && fd >= 0)
        (void)close(fd);
    freeaddrinfo(found);
    return r;
}

bool wire_send(int fd, const void *p, size_t n)
{
    const char *at = p;
    while (n > 0) {
        ssize_t r = send(fd, at, n, MSG_NOSIGNAL);
        if (r <= 0)
            return false;
        at += r;
        n -= (size_t)r;
    }
    return true;
}

bool wire_read(int fd, struct buf *out, int quiet_ms)
{
    char block[8192];
    int64_t until = clock_mono_ms() + TOTAL_MS;
    struct pollfd p = { .fd = fd, .events = POLLIN };
    while (clock_mono_ms() < until && poll(&p, 1, quiet_ms) == 1) {
        ssize_t n = recv(fd, block, sizeof(block), 0);
        if (n <= 0)
            return true;
        if (buf_append(out, block, (size_t)n) < 0)
            return true;
    }
    return false;
}

int wire_status(const struct buf *answer)
{
    unsigned status = 0;
    if (!answer->data || sscanf(answer->data, "HTTP/1.%*u %u", &status) != 1)
        return 0;
    return (int)status;
}

/* The end of the answer at `at`; NULL: it is incomplete, or has no length. */
static const char *answer_end(const char *at, const char *end)
{
    const char *body = strstr(at, "\r\n\r\n"), *length = strcasestr(at, "\ncontent-length:");
    if (!body)
        return NULL;
    body += 4;
    size_t n = length && length < body ? strtoul(length + 16, NULL, 10) : 0;
    return length && n <= (size_t)(end - body) ? body + n : NULL;
}

unsigned wire_answers(const struct buf *all)
{
    unsigned n = 0;
    const char *p = all->data, *end = p ? p + all->len : NULL;
    for (; p && p < end && strncmp(p, "HTTP/1.", 7) == 0; p = answer_end(p, end))
        n++;
    return n;
}
