#include "broker/parked.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/hash.h"
#include "broker/flow.h"
#include "net/head.h"

#define FRESH_MS 1000
#define PARKED_MS 30000
#define PARKED_MAX 128 /* at one place */
#define PLACES_MAX 4096
#define VERDICTS_MAX 16 /* at one place: clients that bring different proofs */

struct known {
    struct known *next; /* the newest comes first */
    struct parked_verdict verdict;
    int64_t fresh_until_ms;
};

struct place {
    struct place *next;
    struct parked *all;
    char sandbox[ID_SIZE];
    unsigned port;
    struct known *known;
    struct upstream *parked; /* the one that was used last comes first */
    unsigned nparked;
    struct deadline deadline;
};

/* ---- connections ---- */

struct upstream *upstream_new(struct loop *loop, int fd)
{
    struct upstream *u = calloc(1, sizeof(*u));
    if (!u) {
        (void)close(fd);
        return NULL;
    }
    sock_init(&u->sock, loop, fd, NULL);
    u->in = (struct buf)BUF_INIT(HEAD_MAX + 2 * FLOW_PIECE);
    u->out = (struct buf)BUF_INIT(2 * HEAD_MAX + 2 * FLOW_PIECE);
    return u;
}

static void free_upstream(struct later *later)
{
    free(container_of(later, struct upstream, later));
}

static void unpark(struct upstream *u)
{
    if (!u->place)
        return;
    *u->at = u->next;
    if (u->next)
        u->next->at = u->at;
    u->place->nparked--;
    crowd_leave(&u->place->all->crowd, u->ticket);
    u->place = NULL;
    loop_no_deadline(u->sock.loop, &u->deadline);
}

void upstream_close(struct upstream *u)
{
    if (!u)
        return;
    unpark(u);
    sock_close(&u->sock);
    buf_done(&u->in);
    buf_done(&u->out);
    loop_defer(u->sock.loop, &u->later, free_upstream);
}

/* A server that speaks or hangs up while it has nothing to answer is done with. */
static void on_parked(struct watch *w, uint32_t events)
{
    upstream_close(container_of(w, struct upstream, sock.watch));
}

static void on_parked_long(struct deadline *d)
{
    upstream_close(container_of(d, struct upstream, deadline));
}

/* ---- places ---- */

static struct place **slot_of(struct parked *all, const char *sandbox, unsigned port)
{
    struct place **at = &all->buckets[(hash_text(sandbox) ^ port) % PARKED_BUCKETS];
    while (*at && ((*at)->port != port || strcmp((*at)->sandbox, sandbox) != 0))
        at = &(*at)->next;
    return at;
}

static void free_known(struct known *k)
{
    if (!k)
        return;
    free(k->verdict.data);
    free(k);
}

static bool is_none(const struct broker_proof *p)
{
    return !p->token[0] && !p->key[0];
}

/* However much of it is right, it takes the same time. Behind their texts both have zeros. */
static bool same_proof(const struct broker_proof *a, const struct broker_proof *b)
{
    if (is_none(a) || is_none(b)) /* most clients of public ones; nothing is learnt from that */
        return is_none(a) && is_none(b);
    return CRYPTO_memcmp(a, b, sizeof(*a)) == 0;
}

static const struct known *find_known(const struct place *p, const struct broker_proof *proof)
{
    int64_t now = clock_mono_ms();
    for (const struct known *k = p->known; k; k = k->next)
        if (k->fresh_until_ms > now && same_proof(&k->verdict.proof, proof))
            return k;
    return NULL;
}

/* Those that are stale or were given with this proof, and the oldest beyond what is kept. */
static void forget_known(struct place *p, const struct broker_proof *proof)
{
    int64_t now = clock_mono_ms();
    unsigned n = 0;
    for (struct known **at = &p->known; *at;) {
        struct known *k = *at;
        if (k->fresh_until_ms > now && !same_proof(&k->verdict.proof, proof) &&
            ++n < VERDICTS_MAX) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        free_known(k);
    }
}

static void drop_place(struct parked *all, struct place **at)
{
    struct place *p = *at;
    while (p->parked)
        upstream_close(p->parked);
    while (p->known) {
        struct known *k = p->known;
        p->known = k->next;
        free_known(k);
    }
    loop_no_deadline(all->loop, &p->deadline);
    *at = p->next;
    all->nplaces--;
    free(p);
}

static void on_stale(struct deadline *d)
{
    struct place *p = container_of(d, struct place, deadline);
    if (p->nparked > 0 || (p->known && p->known->fresh_until_ms > clock_mono_ms()))
        loop_deadline(p->all->loop, d, clock_mono_ms() + PARKED_MS, on_stale);
    else
        drop_place(p->all, slot_of(p->all, p->sandbox, p->port));
}

void parked_init(struct parked *all, struct loop *loop, unsigned most)
{
    *all = (struct parked){ .loop = loop };
    crowd_init(&all->crowd, most);
}

void parked_done(struct parked *all)
{
    for (size_t i = 0; i < PARKED_BUCKETS; i++)
        while (all->buckets[i])
            drop_place(all, &all->buckets[i]);
    free_known(all->unplaced);
    all->unplaced = NULL;
}

static struct place *place_at(struct parked *all, const char *sandbox, unsigned port)
{
    struct place **at = slot_of(all, sandbox, port), *p = *at;
    if (p)
        return p;
    if (all->nplaces >= PLACES_MAX || !(p = calloc(1, sizeof(*p))))
        return NULL; /* then warrend is asked each time */
    p->all = all;
    memcpy(p->sandbox, sandbox, ID_SIZE);
    p->port = port;
    *at = p;
    all->nplaces++;
    loop_deadline(all->loop, &p->deadline, clock_mono_ms() + PARKED_MS, on_stale);
    return p;
}

const struct parked_verdict *parked_learn(struct parked *all, const char *sandbox, unsigned port,
                                          const struct broker_proof *proof,
                                          const struct broker_answer *answer)
{
    struct place *p = place_at(all, sandbox, port);
    struct known *k = calloc(1, sizeof(*k));
    size_t n = strnlen(answer->data, sizeof(answer->data) - 1);
    if (!k || (n > 0 && !(k->verdict.data = strndup(answer->data, n)))) {
        free_known(k);
        return NULL;
    }
    k->verdict.proof = *proof;
    memcpy(k->verdict.host, answer->host, sizeof(k->verdict.host));
    k->verdict.host[sizeof(k->verdict.host) - 1] = '\0';
    k->fresh_until_ms = clock_mono_ms() + FRESH_MS;
    free_known(all->unplaced);
    all->unplaced = NULL;
    if (!p) {
        all->unplaced = k;
        return &k->verdict;
    }
    forget_known(p, proof);
    k->next = p->known;
    p->known = k;
    return &k->verdict;
}

void parked_forget(struct parked *all, const char *sandbox, unsigned port)
{
    struct place **at = slot_of(all, sandbox, port);
    if (*at)
        drop_place(all, at);
}

struct upstream *parked_take(struct parked *all, const char *sandbox, unsigned port,
                             const struct broker_proof *proof,
                             const struct parked_verdict **ret_verdict)
{
    struct place *p = *slot_of(all, sandbox, port);
    const struct known *k = p && p->parked ? find_known(p, proof) : NULL;
    if (!k)
        return NULL;
    struct upstream *u = p->parked;
    *ret_verdict = &k->verdict;
    unpark(u);
    u->reused = true;
    return u;
}

void parked_put(struct parked *all, const char *sandbox, unsigned port, struct upstream *u)
{
    struct place *p = *slot_of(all, sandbox, port);
    u->ticket = p && p->nparked < PARKED_MAX ? crowd_enter(&all->crowd, sandbox) : 0;
    if (u->ticket == 0) {
        upstream_close(u);
        return;
    }
    buf_done(&u->in);
    buf_done(&u->out);
    u->owner = NULL;
    u->place = p;
    u->next = p->parked;
    u->at = &p->parked;
    if (u->next)
        u->next->at = &u->next;
    p->parked = u;
    p->nparked++;
    u->sock.watch.fn = on_parked;
    loop_deadline(all->loop, &u->deadline, clock_mono_ms() + PARKED_MS, on_parked_long);
    if (sock_want(&u->sock, EPOLLIN | EPOLLRDHUP) < 0)
        upstream_close(u);
}
