#include "broker/resolver.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"

#define DNS_PORT 53
#define TRY_MS 2000
#define TRIES_MAX 3

static int read_port(const char *text, uint16_t *ret)
{
    char *end;
    errno = 0;
    unsigned long v = strtoul(text, &end, 10);
    if (errno || *end || end == text || v == 0 || v > UINT16_MAX)
        return -EINVAL;
    *ret = (uint16_t)v;
    return 0;
}

int resolver_add(struct resolver *r, const char *text)
{
    struct resolver_server s = { .port = DNS_PORT };
    const char *end = text[0] == '[' ? strchr(text, ']') : NULL;
    const char *colon = end ? (end[1] == ':' ? end + 1 : NULL) : strrchr(text, ':');
    size_t n = strlen(text);
    if (r->n_servers == RESOLVER_SERVERS_MAX)
        return -E2BIG;
    if (address_parse(text, n, &s.address) < 0) {
        if (!colon || read_port(colon + 1, &s.port) < 0)
            return -EINVAL;
        const char *start = end ? text + 1 : text;
        n = (size_t)((end ? end : colon) - start);
        if (address_parse(start, n, &s.address) < 0)
            return -EINVAL;
    }
    r->servers[r->n_servers++] = s;
    return 0;
}

static void stop(struct lookup *l)
{
    if (l->fd < 0)
        return;
    loop_remove(l->resolver->loop, &l->watch);
    (void)close(l->fd);
    l->fd = -1;
    buf_done(&l->in);
}

static void end(struct lookup *l, const struct dns_answer *answer)
{
    void (*fn)(struct lookup *, const struct dns_answer *) = l->fn;
    lookup_cancel(l);
    fn(l, answer);
}

void lookup_cancel(struct lookup *l)
{
    if (!l->fn)
        return;
    stop(l);
    loop_no_deadline(l->resolver->loop, &l->deadline);
    l->resolver->n_open--;
    l->fn = NULL;
}

static void on_answer(struct watch *w, uint32_t events);

/* The question, over TCP with its length before it. */
static int send_question(struct lookup *l)
{
    struct buf out = BUF_INIT(2 + DNS_UDP_MAX);
    int r = l->stream ? buf_append(&out, "\0", 2) : 0;
    if (r == 0)
        r = dns_write_question(l->id, l->name, l->type, &out);
    if (r == 0 && l->stream) {
        out.data[0] = (char)((out.len - 2) >> 8);
        out.data[1] = (char)(out.len - 2);
    }
    if (r == 0 && send(l->fd, out.data, out.len, MSG_NOSIGNAL) != (ssize_t)out.len)
        r = -EIO;
    buf_done(&out);
    l->asked = r == 0;
    return r;
}

static int try_server(struct lookup *l, const struct resolver_server *s)
{
    struct sockaddr_storage sa;
    socklen_t len = address_to_sockaddr(&s->address, s->port, &sa);
    int r = random_bytes(&l->id, sizeof(l->id));
    if (r < 0)
        return r;
    l->fd = socket(sa.ss_family,
                   (l->stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd < 0)
        return -errno;
    l->asked = false;
    l->in = (struct buf)BUF_INIT(2 + DNS_TCP_MAX);
    r = connect(l->fd, (const struct sockaddr *)&sa, len) < 0 && errno != EINPROGRESS ? -errno : 0;
    if (r == 0 && !l->stream)
        r = send_question(l);
    l->watch = (struct watch){ -1, on_answer };
    if (r == 0)
        r = loop_add(l->resolver->loop, &l->watch, l->fd, l->stream ? EPOLLOUT : EPOLLIN);
    if (r < 0) {
        (void)close(l->fd);
        l->fd = -1;
    }
    return r;
}

static void on_deadline(struct deadline *d);

static void try_this(struct lookup *l, bool stream)
{
    struct resolver *r = l->resolver;
    stop(l);
    l->stream = stream;
    int sent = try_server(l, &r->servers[(l->tries - 1) % r->n_servers]);
    loop_deadline(r->loop, &l->deadline, clock_mono_ms() + (sent < 0 ? 0 : TRY_MS), on_deadline);
}

/* The next resolver, or the next round; a resolver that cannot be reached is as one that is silent. */
static void try_next(struct lookup *l)
{
    if (l->tries >= TRIES_MAX * l->resolver->n_servers) {
        end(l, NULL);
        return;
    }
    l->tries++;
    try_this(l, false);
}

static void on_deadline(struct deadline *d)
{
    try_next(container_of(d, struct lookup, deadline));
}

static void take_answer(struct lookup *l, const char *msg, size_t n)
{
    struct dns_answer a;
    if (dns_read_answer(msg, n, l->id, l->name, l->type, &a) < 0) {
        if (l->stream) /* nobody else could have sent it */
            try_next(l);
        return; /* not ours: the right one may still come */
    }
    l->failed = a.rcode == DNS_NXDOMAIN ? DNS_NOERROR : a.rcode;
    if (l->failed)
        try_next(l);
    else if (a.truncated && !l->stream)
        try_this(l, true);
    else
        end(l, &a);
}

static void on_datagram(struct lookup *l)
{
    char msg[DNS_UDP_MAX];
    ssize_t n = recv(l->fd, msg, sizeof(msg), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) /* nobody is there */
        try_next(l);
    else
        take_answer(l, msg, (size_t)n);
}

static void on_stream(struct lookup *l)
{
    char piece[4096];
    const unsigned char *p;
    if (!l->asked) {
        if (send_question(l) < 0 || loop_change(l->resolver->loop, &l->watch, EPOLLIN) < 0)
            try_next(l);
        return;
    }
    ssize_t n = recv(l->fd, piece, sizeof(piece), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || buf_append(&l->in, piece, (size_t)n) < 0) {
        try_next(l);
        return;
    }
    p = (const unsigned char *)l->in.data;
    if (l->in.len < 2 || l->in.len - 2 < ((size_t)p[0] << 8 | p[1]))
        return;
    struct buf whole = l->in; /* what comes of it may end the lookup */
    l->in = (struct buf)BUF_INIT(0);
    take_answer(l, whole.data + 2, (size_t)p[0] << 8 | p[1]);
    buf_done(&whole);
}

static void on_answer(struct watch *w, uint32_t events)
{
    struct lookup *l = container_of(w, struct lookup, watch);
    if (l->stream)
        on_stream(l);
    else
        on_datagram(l);
}

int lookup_begin(struct lookup *l, struct resolver *r, const char *name, enum dns_type type,
                 void (*fn)(struct lookup *l, const struct dns_answer *answer))
{
    if (r->n_servers == 0)
        return -ENETUNREACH;
    if (r->n_open >= RESOLVER_OPEN_MAX)
        return -EBUSY;
    *l = (struct lookup){ .resolver = r, .fd = -1, .type = type, .fn = fn };
    (void)snprintf(l->name, sizeof(l->name), "%s", name);
    r->n_open++;
    try_next(l);
    return 0;
}
