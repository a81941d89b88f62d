/* What egress carries is counted here, held to its limits, and told of. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/clock.h"
#include "broker/egress_private.h"
#include "base/share.h"
#include "broker/tap.h"

#define REFILL_MS 100   /* as fine as the loop's clock is */
#define REPORT_MS 10000 /* what goes on is told of this often, while bytes pass */
#define RECORDS_PER_S 50
#define RECORDS_BURST 512
#define PATIENCE_PER_S 1
#define PATIENCE_BURST 16

static int send_who(void *arg, const struct broker_who *msg)
{
    struct network *n = arg;
    const struct egress_config *c = &n->egress->config;
    return c->who ? c->who(c->arg, msg) : -ENOTSUP;
}

void ledger_init(struct network *n)
{
    allot_init(&n->allot);
    whos_init(&n->whos, n->egress->loop, n->id, send_who, n);
    n->records = (struct bucket){ RECORDS_BURST * 1000, clock_mono_ms() };
    n->patience = (struct bucket){ PATIENCE_BURST * 1000, n->records.at_ms };
}

void ledger_done(struct network *n)
{
    whos_done(&n->whos);
    loop_no_deadline(n->egress->loop, &n->refill);
    loop_no_deadline(n->egress->loop, &n->cut);
    if (n->egress->config.tally)
        tally_send(n->egress->config.tally, n->id);
}

/* ---- what is told ---- */

static void count(struct network *n, const struct egress_record *rec, struct tally_row *row)
{
    if (!n->egress->config.tally)
        return;
    memcpy(row->sandbox, n->id, sizeof(row->sandbox));
    if (rec->name[0] || rec->question)
        (void)snprintf(row->host, sizeof(row->host), "%s", rec->name);
    else
        (void)address_text(&rec->to, row->host);
    tally_add(n->egress->config.tally, row);
}

static bool take_one(struct bucket *b, int64_t per_s, int64_t burst)
{
    int64_t now = clock_mono_ms();
    b->level += (now - b->at_ms) * per_s;
    b->level = b->level > burst * 1000 ? burst * 1000 : b->level;
    b->at_ms = now;
    if (b->level < 1000)
        return false;
    b->level -= 1000;
    return true;
}

/* A refusal that repeats a thousand times a second needs one line, not a thousand. */
static bool may_tell(struct network *n)
{
    return take_one(&n->records, RECORDS_PER_S, RECORDS_BURST);
}

bool egress_may_listen(struct network *n)
{
    return take_one(&n->patience, PATIENCE_PER_S, PATIENCE_BURST);
}

void egress_listened(struct network *n)
{
    n->patience.level += 1000;
}

void egress_record(struct network *n, struct egress_record *rec)
{
    memcpy(rec->sandbox, n->id, sizeof(rec->sandbox));
    if (!rec->allowed) {
        struct tally_row row = { .denied = 1 };
        count(n, rec, &row);
    }
    if (n->egress->config.record && may_tell(n))
        n->egress->config.record(n->egress->config.arg, rec);
}

void egress_begun(struct network *n, struct egress_record *rec)
{
    struct tally_row row = { .connections = 1 };
    if (!n->egress->last_flow)
        n->egress->last_flow = (uint64_t)clock_now_ms() << 20; /* not one of a former broker's */
    rec->flow = ++n->egress->last_flow;
    rec->told_ms = clock_mono_ms();
    count(n, rec, &row);
}

void egress_used(struct network *n, const char *secret, const char *host, uint16_t port)
{
    struct tally_row row = { .kind = TALLY_USE, .connections = 1, .port = port };
    if (!n->egress->config.tally)
        return;
    memcpy(row.sandbox, n->id, sizeof(row.sandbox));
    (void)snprintf(row.host, sizeof(row.host), "%s", host);
    (void)snprintf(row.binding, sizeof(row.binding), "%s", secret);
    tally_add(n->egress->config.tally, &row);
}

/* A record whose program is not known yet. */
struct unsigned_record {
    struct who who;
    struct network *net;
    struct egress_record rec;
};

static void on_late_who(struct who *w, const char *program)
{
    struct unsigned_record *u = container_of(w, struct unsigned_record, who);
    (void)snprintf(u->rec.program, sizeof(u->rec.program), "%s", program);
    egress_record(u->net, &u->rec);
    free(u);
}

void egress_record_who(struct network *n, struct egress_record *rec, struct who *who)
{
    struct unsigned_record *u = who_waits(who) ? malloc(sizeof(*u)) : NULL;
    if (!u) {
        who_end(who);
        egress_record(n, rec);
        return;
    }
    *u = (struct unsigned_record){ .who = { .fn = on_late_who }, .net = n, .rec = *rec };
    who_move(who, &u->who);
}

static void report(struct network *n, struct egress_record *rec)
{
    int64_t now = clock_mono_ms();
    if (!rec->flow || now - rec->told_ms < REPORT_MS)
        return;
    rec->told_ms = now;
    rec->open = true;
    egress_record(n, rec);
    rec->open = false;
}

/* ---- limits ---- */

static void on_refill(struct deadline *d)
{
    struct network *n = container_of(d, struct network, refill);
    allot_wake(&n->allot);
    if (n->allot.first && !d->at)
        loop_deadline(n->egress->loop, d, clock_mono_ms() + REFILL_MS, on_refill);
}

static void on_cut(struct deadline *d)
{
    struct network *n = container_of(d, struct network, cut);
    outlets_close(n, EDQUOT);
    datagrams_close(n);
    taps_close(n);
    if (n->egress->config.tally) /* whoever ends us now must not give it back a second's worth */
        tally_send(n->egress->config.tally, n->id);
}

static void cut_if_spent(struct network *n)
{
    if (allot_is_spent(&n->allot) && !n->cut.at)
        loop_deadline(n->egress->loop, &n->cut, clock_mono_ms(), on_cut);
}

void egress_limit(struct network *n, const struct allot_limits *limits, uint64_t spent)
{
    allot_set(&n->allot, limits, spent, clock_mono_ms());
    cut_if_spent(n);
    if (n->allot.first) /* there may be more of it now */
        loop_deadline(n->egress->loop, &n->refill, clock_mono_ms(), on_refill);
}

void egress_carried(struct network *n, struct egress_record *rec, uint64_t sent, uint64_t received)
{
    struct tally_row row = { .sent_bytes = sent - rec->sent_bytes,
                             .received_bytes = received - rec->received_bytes };
    if (!row.sent_bytes && !row.received_bytes)
        return;
    rec->sent_bytes = sent;
    rec->received_bytes = received;
    allot_spend(&n->allot, ALLOT_SENT, row.sent_bytes);
    allot_spend(&n->allot, ALLOT_RECEIVED, row.received_bytes);
    cut_if_spent(n);
    count(n, rec, &row);
    report(n, rec);
}

bool egress_admit(struct network *n, struct policy_answer *ret_answer)
{
    *ret_answer = (struct policy_answer){ .verdict = POLICY_DENY, .why = POLICY_BY_CONNECTIONS };
    return n->n_outlets < share(n->egress->room, n->egress->n_outlets, OUTLETS_MAX) &&
           allot_admit(&n->allot, n->n_outlets + n->n_taps, clock_mono_ms(), &ret_answer->why);
}

size_t egress_may(struct network *n, enum allot_way way)
{
    if (n->allot.limits.bytes_per_s == 0 && n->allot.limits.bytes == 0)
        return SIZE_MAX;
    return allot_may(&n->allot, way, clock_mono_ms());
}

void egress_wait(struct network *n, struct allot_wait *w, void (*fn)(struct allot_wait *wait))
{
    allot_wait(&n->allot, w, fn);
    if (!n->refill.at)
        loop_deadline(n->egress->loop, &n->refill, clock_mono_ms() + REFILL_MS, on_refill);
}

/* ---- who ---- */

static int end_of(int fd, int (*name)(int fd, struct sockaddr *sa, socklen_t *len),
                  struct diag_end *ret_end)
{
    struct sockaddr_storage sa;
    socklen_t len = sizeof(sa);
    struct sockaddr_in in; /* the port is in the same place in both */
    if (name(fd, (struct sockaddr *)&sa, &len) < 0)
        return -errno;
    memcpy(&in, &sa, sizeof(in));
    ret_end->port = ntohs(in.sin_port);
    return address_from_sockaddr((const struct sockaddr *)&sa, &ret_end->address);
}

bool egress_ask_who(struct network *n, int fd, struct who *w,
                    void (*fn)(struct who *w, const char *program))
{
    struct diag_end client, server;
    return end_of(fd, getpeername, &client) == 0 && end_of(fd, getsockname, &server) == 0 &&
           who_begin(&n->whos, w, false, &client, &server, fn);
}
