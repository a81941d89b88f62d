/* DNS as a sandbox has it: whichever resolver it asks, we answer.
 *
 * A name that no rule could let through is not asked for anywhere. Addresses that are out of reach
 * for all are left out of answers, whoever gave them, as are those that this machine has no way to; what
 * remains is pinned: the name may be used at that address, and there alone. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/share.h"
#include "broker/bound.h"
#include "broker/detour.h"
#include "broker/egress_private.h"
#include "broker/route_check.h"
#include "broker/tap.h"
#include "net/dns.h"

#define PIN_MS (60 * 60 * 1000) /* programs keep addresses longer than they are told */
#define TTL_MAX 600             /* shorter than a pin, so that a client asks again in time */
#define DATAGRAMS_MAX 64        /* before others get their turn */
#define STREAMS_MAX 32
#define STREAM_MS 10000
#define INNER_TTL 30 /* seconds; bindings may change */
#define HOLD_MS 50   /* a refusal, until it is known whom */
#define DNS_PORT 53

struct names_job {
    struct network *net;
    struct names_job *next, **at;
    struct lookup lookup;
    struct dns_question q;
    struct names_stream *stream;  /* NULL: a datagram, from and to here */
    struct sockaddr_in6 from, to; /* to: the resolver that it meant */
    socklen_t from_len;
    bool from_v4;
    struct who who; /* of one that is refused, which waits for it a moment */
    struct deadline hold;
    struct egress_record rec;
};

struct names_stream {
    struct network *net;
    struct names_stream *next, **at;
    struct watch watch;
    struct deadline deadline;
    struct later later;
    int fd;
    struct buf in;         /* what came and was not answered */
    struct names_job *job; /* one at a time */
    bool busy;             /* its questions are being taken */
};

static void stream_close(struct names_stream *s);
static void stream_reply(struct names_stream *s, const struct buf *msg);

/* ---- a question ---- */

static void job_free(struct names_job *j)
{
    lookup_cancel(&j->lookup);
    who_end(&j->who);
    loop_no_deadline(j->net->egress->loop, &j->hold);
    *j->at = j->next;
    if (j->next)
        j->next->at = j->at;
    j->net->n_jobs--;
    if (j->stream)
        j->stream->job = NULL;
    loop_later(j->net->egress->loop, j);
}

/* Answer as the resolver that was asked. */
static void send_datagram(const struct names_job *j, const struct buf *msg)
{
    union {
        struct cmsghdr head; /* for its alignment */
        char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
    } control = { .bytes = { 0 } };
    struct iovec part = { msg->data, msg->len };
    struct msghdr m = { .msg_name = (void *)(uintptr_t)&j->from,
                        .msg_namelen = j->from_len,
                        .msg_iov = &part,
                        .msg_iovlen = 1,
                        .msg_control = control.bytes };
    control.head.cmsg_level = j->from_v4 ? SOL_IP : SOL_IPV6;
    control.head.cmsg_type = j->from_v4 ? IP_PKTINFO : IPV6_PKTINFO;
    if (j->from_v4) {
        struct in_pktinfo info = { 0 };
        memcpy(&info.ipi_spec_dst, j->to.sin6_addr.s6_addr + 12, 4);
        control.head.cmsg_len = CMSG_LEN(sizeof(info));
        m.msg_controllen = CMSG_SPACE(sizeof(info));
        memcpy(CMSG_DATA(&control.head), &info, sizeof(info));
    } else {
        struct in6_pktinfo info = { .ipi6_addr = j->to.sin6_addr };
        control.head.cmsg_len = CMSG_LEN(sizeof(info));
        m.msg_controllen = CMSG_SPACE(sizeof(info));
        memcpy(CMSG_DATA(&control.head), &info, sizeof(info));
    }
    (void)sendmsg(j->net->udp_fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Send it, and the job is over. */
static void reply(struct names_job *j, const struct dns_reply *answer)
{
    struct buf msg = BUF_INIT(DNS_TCP_MAX);
    struct names_stream *s = j->stream;
    size_t max = s ? DNS_TCP_MAX : j->q.udp_max;
    int r = dns_write_reply(&j->q, answer, max, &msg);
    if (r == 0 && !s)
        send_datagram(j, &msg);
    job_free(j);
    if (s && r == 0)
        stream_reply(s, &msg);
    else if (s)
        stream_close(s);
    buf_done(&msg);
}

static void reply_code(struct names_job *j, enum dns_rcode rcode)
{
    reply(j, &(struct dns_reply){ .rcode = rcode });
}

static void refused(struct names_job *j)
{
    egress_record_who(j->net, &j->rec, &j->who);
    reply(j, &(struct dns_reply){ .rcode = DNS_NXDOMAIN, .reason = DNS_PROHIBITED });
}

static void on_who(struct who *w, const char *program)
{
    struct names_job *j = container_of(w, struct names_job, who);
    (void)snprintf(j->rec.program, sizeof(j->rec.program), "%s", program);
    refused(j);
}

static void on_held(struct deadline *d)
{
    refused(container_of(d, struct names_job, hold));
}

static bool ask_who(struct names_job *j)
{
    struct diag_end client = { .port = ntohs(j->from.sin6_port) }, server = { .port = DNS_PORT };
    server.address =
        j->from_v4 ? address_v4(j->to.sin6_addr.s6_addr + 12) : address_v6(j->to.sin6_addr.s6_addr);
    return address_from_sockaddr((const struct sockaddr *)&j->from, &client.address) == 0 &&
           who_begin(&j->net->whos, &j->who, true, &client, &server, on_who);
}

/* Begins its record, and asks whose it is; false: that will not be known. */
static bool note(struct names_job *j, const struct policy_answer *answer)
{
    j->rec = (struct egress_record){ .wall_ms = clock_now_ms(), .question = true };
    j->rec.protocol = j->stream ? POLICY_TCP : POLICY_UDP;
    memcpy(j->rec.name, j->q.name, sizeof(j->rec.name));
    egress_answered(&j->rec, answer);
    return j->stream ? egress_ask_who(j->net, j->stream->fd, &j->who, on_who) : ask_who(j);
}

/* to: the address that it leads to, which is out of reach; NULL: nobody looked. */
static void refuse(struct names_job *j, const struct policy_answer *answer,
                   const struct address *to)
{
    bool asked = note(j, answer);
    if (to)
        j->rec.to = *to;
    if (asked)
        loop_deadline(j->net->egress->loop, &j->hold, clock_mono_ms() + HOLD_MS, on_held);
    else
        refused(j);
}

static struct policy_answer resolves(const struct names_job *j)
{
    if (!j->q.name[0])
        return (struct policy_answer){ POLICY_DENY, POLICY_BY_DEFAULT, NULL };
    if (j->net->bound && bindings_resolve(&j->net->bound->bindings, j->q.name))
        return (struct policy_answer){ POLICY_ALLOW, POLICY_BY_RULE, NULL };
    return policy_resolves(&j->net->policy, j->q.name);
}

/* A name that may be used and leads nowhere, for the log. Programs ask for both families, and again:
 * it is told of once for a while, and "no address" only when neither family has one. */
static void tell_unresolved(struct names_job *j, int failure)
{
    struct unresolved *u = unresolved_find(&j->net->unresolved, j->q.name, clock_mono_ms());
    bool other_too = u->families && u->families != (j->q.type == DNS_A ? 1u : 2u);
    bool none = failure == ENODATA || failure == ENETUNREACH;
    u->families |= j->q.type == DNS_A ? 1u : 2u;
    if (u->told || (none && !other_too))
        return;
    u->told = true;
    struct policy_answer answer = resolves(j);
    (void)note(j, &answer);
    j->rec.failure = failure;
    egress_record_who(j->net, &j->rec, &j->who);
}

static int failure_of(const struct lookup *l, const struct dns_answer *a, size_t away)
{
    if (!a)
        return l->failed == DNS_REFUSED ? ECONNREFUSED : l->failed ? EREMOTEIO : ETIMEDOUT;
    return a->rcode == DNS_NXDOMAIN ? ENOENT
           : a->truncated           ? EREMOTEIO
           : away                   ? ENETUNREACH
                                    : ENODATA;
}

static void on_looked_up(struct lookup *l, const struct dns_answer *a)
{
    struct names_job *j = container_of(l, struct names_job, lookup);
    struct policy_limits limits = egress_limits(j->net->egress);
    struct address good[DNS_ADDRESSES_MAX];
    size_t n = 0, away = 0;
    int64_t now = clock_mono_ms();
    if (!a || (a->truncated && !a->n_addresses)) {
        tell_unresolved(j, failure_of(l, a, 0));
        reply_code(j, DNS_SERVFAIL);
        return;
    }
    for (size_t i = 0; i < a->n_addresses; i++) {
        const struct address *to = &a->addresses[i];
        if (!policy_place_open(&limits, to))
            continue;
        if (!detour_needed(j->net, to) && !route_check_worth(to))
            away++;
        else if (pins_add(j->net->pins, j->q.name, to, now, now + PIN_MS) == 0)
            good[n++] = *to;
    }
    if (a->n_addresses && !n && !away) {
        static const struct policy_answer out = { POLICY_DENY, POLICY_BY_PLACE, NULL };
        refuse(j, &out, &a->addresses[0]);
        return;
    }
    if (!n)
        tell_unresolved(j, failure_of(l, a, away));
    reply(j, &(struct dns_reply){ .rcode = (enum dns_rcode)a->rcode,
                                  .ttl = a->ttl < TTL_MAX ? a->ttl : TTL_MAX,
                                  .addresses = good,
                                  .n_addresses = n });
}

/* A name of ours. Whoever asks for another in our zone is told that there is none. */
static bool reply_inner(struct names_job *j)
{
    static const uint8_t bytes[4] = TAP_INNER_ADDRESS;
    struct address inner = address_v4(bytes);
    char label[HOST_SIZE];
    size_t n = strlen(j->q.name), zone = sizeof(BINDING_ZONE) - 1;
    if (!j->net->bound || n <= zone || strcmp(j->q.name + n - zone, BINDING_ZONE) != 0)
        return false;
    (void)snprintf(label, sizeof(label), "%.*s", (int)(n - zone), j->q.name);
    bool known = bindings_named(&j->net->bound->bindings, label) != NULL;
    reply(j, &(struct dns_reply){ .rcode = known ? DNS_NOERROR : DNS_NXDOMAIN,
                                  .ttl = INNER_TTL,
                                  .addresses = &inner,
                                  .n_addresses = known ? 1 : 0 });
    return true;
}

static void look_up(struct names_job *j)
{
    int r = lookup_begin(&j->lookup, &j->net->egress->resolver, j->q.name, (enum dns_type)j->q.type,
                         on_looked_up);
    if (r >= 0)
        return;
    tell_unresolved(j, r == -ENETUNREACH ? ETIMEDOUT : EREMOTEIO); /* there is no resolver */
    reply_code(j, DNS_SERVFAIL);
}

/* What dns_read_question said of it, in r. */
static void begin(struct names_job *j, int r)
{
    if (r < 0) {
        reply_code(j, r == -EOPNOTSUPP ? DNS_NOTIMP : DNS_FORMERR);
        return;
    }
    if (reply_inner(j))
        return;
    struct policy_answer answer = resolves(j);
    if (answer.verdict != POLICY_ALLOW)
        refuse(j, &answer, NULL);
    else if (j->q.type != DNS_A && j->q.type != DNS_AAAA)
        reply_code(j, DNS_NOERROR); /* it has none of those: only addresses pass */
    else
        look_up(j);
}

/* NULL: there are too many, or it is not worth an answer. */
static struct names_job *job_new(struct network *n, const void *p, size_t len, int *ret_r)
{
    const struct resolver *r = &n->egress->resolver;
    size_t most = share(RESOLVER_OPEN_MAX, r->n_open, QUESTIONS_MAX);
    struct names_job *j = n->n_jobs < most ? calloc(1, sizeof(*j)) : NULL;
    if (!j)
        return NULL;
    *ret_r = dns_read_question(p, len, &j->q);
    if (*ret_r == -EBADMSG) {
        free(j);
        return NULL;
    }
    j->net = n;
    j->next = n->jobs;
    j->at = &n->jobs;
    if (j->next)
        j->next->at = &j->next;
    n->jobs = j;
    n->n_jobs++;
    return j;
}

/* ---- datagrams ---- */

/* Where it was sent to; false: it does not say. */
static bool destination(struct msghdr *m, struct names_job *j)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR) {
            memcpy(&j->to, CMSG_DATA(c), sizeof(j->to));
            j->from_v4 = false;
            return true;
        }
        if (c->cmsg_level == SOL_IP && c->cmsg_type == IP_ORIGDSTADDR) {
            struct sockaddr_in v4;
            memcpy(&v4, CMSG_DATA(c), sizeof(v4));
            memcpy(j->to.sin6_addr.s6_addr + 12, &v4.sin_addr, 4);
            j->from_v4 = true;
            return true;
        }
    }
    return false;
}

/* 0 when there is nothing more. */
static int take_datagram(struct network *n)
{
    char msg[DNS_UDP_MAX], control[256];
    struct sockaddr_in6 from;
    struct iovec part = { msg, sizeof(msg) };
    struct msghdr m = { .msg_name = &from,
                        .msg_namelen = sizeof(from),
                        .msg_iov = &part,
                        .msg_iovlen = 1,
                        .msg_control = control,
                        .msg_controllen = sizeof(control) };
    ssize_t len = recvmsg(n->udp_fd, &m, MSG_DONTWAIT);
    if (len < 0)
        return errno == EINTR || errno == ECONNREFUSED;
    int r = 0;
    struct names_job *j = m.msg_flags & MSG_TRUNC ? NULL : job_new(n, msg, (size_t)len, &r);
    if (!j)
        return 1;
    j->from = from;
    j->from_len = m.msg_namelen;
    if (destination(&m, j))
        begin(j, r);
    else
        job_free(j);
    return 1;
}

void names_on_udp(struct watch *w, uint32_t events)
{
    struct network *n = container_of(w, struct network, udp);
    for (int i = 0; i < DATAGRAMS_MAX && take_datagram(n); i++)
        ;
}

/* ---- over TCP ---- */

static void stream_freed(struct later *l)
{
    free(container_of(l, struct names_stream, later));
}

static void stream_close(struct names_stream *s)
{
    struct loop *loop = s->net->egress->loop;
    if (s->fd < 0)
        return;
    if (s->job)
        job_free(s->job);
    loop_remove(loop, &s->watch);
    loop_no_deadline(loop, &s->deadline);
    (void)close(s->fd);
    s->fd = -1;
    buf_done(&s->in);
    *s->at = s->next;
    if (s->next)
        s->next->at = s->at;
    s->net->n_streams--;
    s->net->egress->n_outlets--;
    loop_defer(loop, &s->later, stream_freed);
}

static void on_stream_deadline(struct deadline *d)
{
    stream_close(container_of(d, struct names_stream, deadline));
}

/* The next whole question, if there is one and the former is answered. */
static bool take_question(struct names_stream *s)
{
    const unsigned char *p = (const unsigned char *)s->in.data;
    int r = 0;
    if (s->fd < 0 || s->job || s->in.len < 2)
        return false;
    size_t len = (size_t)p[0] << 8 | p[1];
    if (s->in.len - 2 < len)
        return false;
    struct names_job *j = job_new(s->net, p + 2, len, &r);
    buf_drop_front(&s->in, 2 + len);
    if (!j) {
        stream_close(s);
        return false;
    }
    j->stream = s;
    s->job = j;
    begin(j, r);
    return true;
}

/* A question may be answered at once, and then asks for the next: that is this loop's to take. */
static void stream_next(struct names_stream *s)
{
    if (s->busy)
        return;
    s->busy = true;
    while (take_question(s))
        ;
    s->busy = false;
}

/* Answers are small beside a socket's room: one that does not fit is from a client that never reads. */
static void stream_reply(struct names_stream *s, const struct buf *msg)
{
    const unsigned char len[2] = { (unsigned char)(msg->len >> 8), (unsigned char)msg->len };
    if (s->fd < 0)
        return;
    if (send(s->fd, len, 2, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE) != 2 ||
        send(s->fd, msg->data, msg->len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)msg->len) {
        stream_close(s);
        return;
    }
    loop_deadline(s->net->egress->loop, &s->deadline, clock_mono_ms() + STREAM_MS,
                  on_stream_deadline);
    stream_next(s);
}

static void on_stream(struct watch *w, uint32_t events)
{
    struct names_stream *s = container_of(w, struct names_stream, watch);
    char piece[2048];
    ssize_t n = recv(s->fd, piece, sizeof(piece), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || buf_append(&s->in, piece, (size_t)n) < 0)
        stream_close(s);
    else
        stream_next(s);
}

void names_stream_begin(struct network *n, int fd)
{
    struct egress *e = n->egress;
    size_t most = share(e->room, e->n_outlets, STREAMS_MAX);
    struct names_stream *s = n->n_streams < most ? calloc(1, sizeof(*s)) : NULL;
    if (!s) {
        (void)close(fd);
        return;
    }
    *s = (struct names_stream){
        .net = n, .watch = { -1, on_stream }, .fd = fd, .in = BUF_INIT(4096)
    }; /* several questions at once */
    s->next = n->streams;
    s->at = &n->streams;
    if (s->next)
        s->next->at = &s->next;
    n->streams = s;
    n->n_streams++;
    e->n_outlets++; /* it has a descriptor, too */
    loop_deadline(e->loop, &s->deadline, clock_mono_ms() + STREAM_MS, on_stream_deadline);
    if (loop_add(e->loop, &s->watch, fd, EPOLLIN) < 0)
        stream_close(s);
}

void names_close(struct network *n)
{
    while (n->streams)
        stream_close(n->streams);
    while (n->jobs)
        job_free(n->jobs);
}
