#include "front/http/connections.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"

#define GIVES_WAY_MS 1000 /* a stranger's request takes less, or may be cut */
#define KEPT_PART 4       /* so much of a key's and of an address's seats is left to requests */
#define PLACES 4096       /* of each table: chains stay short at the highest limits */

TAILQ_HEAD(seats, seat);

struct connections_address {
    struct connections_address *next;
    uint64_t net[2]; /* family, and the address or its first 64 bits */
    unsigned n, upgraded;
    struct seats strangers; /* waiting ones without a key */
};

struct connections_key {
    struct connections_key *next;
    uint64_t who;
    unsigned n;        /* connections whose last request came with it */
    unsigned upgraded; /* of these */
};

struct connections {
    struct connections_limits limits;
    connections_cut_fn cut;
    uint64_t seed;
    pthread_mutex_t lock;  /* guards the rest */
    unsigned n, strangers; /* all; those that work without a key */
    unsigned n_waiting, n_known, n_upgraded;
    struct seats waiting, working; /* without a key, the longest first */
    struct connections_address *addresses[PLACES];
    struct connections_key *keys[PLACES];
};

int connections_new(const struct connections_limits *limits, connections_cut_fn cut,
                    struct connections **ret_c, struct err *err)
{
    struct connections *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(err, ENOMEM, "cannot allocate the table of connections");
    c->limits = *limits;
    c->cut = cut;
    TAILQ_INIT(&c->waiting);
    TAILQ_INIT(&c->working);
    (void)pthread_mutex_init(&c->lock, NULL);
    int r = random_bytes(&c->seed, sizeof(c->seed));
    if (r < 0) {
        connections_free(c);
        return err_set(err, -r, "cannot get random bytes");
    }
    *ret_c = c;
    return 0;
}

void connections_free(struct connections *c)
{
    if (!c)
        return;
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

/* Hash with a seed that no client knows, so that none can choose its place. */
static uint64_t mix(const struct connections *c, uint64_t v)
{
    v = (v ^ c->seed) * UINT64_C(0x9e3779b97f4a7c15);
    v ^= v >> 32;
    v *= UINT64_C(0xd6e8feb86659fd93);
    return v ^ v >> 29;
}

uint64_t connections_who(const struct connections *c, const char *text)
{
    uint64_t hash = c->seed;
    for (; *text; text++)
        hash = mix(c, hash + (unsigned char)*text);
    return hash ? hash : 1;
}

/* ---- addresses ---- */

/* False: the peer has no address to count. A host of IPv6 may use any address of its /64. */
static bool net_of(const struct sockaddr *peer, uint64_t net[2])
{
    uint32_t v4;
    net[0] = AF_INET;
    if (peer->sa_family == AF_INET) {
        v4 = ((const struct sockaddr_in *)(const void *)peer)->sin_addr.s_addr;
    } else if (peer->sa_family == AF_INET6) {
        const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr;
        if (!IN6_IS_ADDR_V4MAPPED(a)) {
            net[0] = AF_INET6;
            memcpy(&net[1], a, sizeof(net[1]));
            return true;
        }
        memcpy(&v4, &a->s6_addr[12], sizeof(v4));
    } else {
        return false;
    }
    net[1] = v4;
    return true;
}

static struct connections_address **place_of(struct connections *c, const uint64_t net[2])
{
    struct connections_address **at = &c->addresses[mix(c, net[0] ^ mix(c, net[1])) % PLACES];
    while (*at && ((*at)->net[0] != net[0] || (*at)->net[1] != net[1]))
        at = &(*at)->next;
    return at;
}

static void leave_address(struct connections *c, struct seat *s)
{
    struct connections_address *a = s->address;
    s->address = NULL;
    if (!a || --a->n > 0)
        return;
    *place_of(c, a->net) = a->next;
    free(a);
}

static int enter_address(struct connections *c, struct seat *s, const uint64_t net[2])
{
    struct connections_address **at = place_of(c, net);
    if (!*at) {
        struct connections_address *a = calloc(1, sizeof(*a));
        if (!a)
            return -ENOMEM;
        a->net[0] = net[0];
        a->net[1] = net[1];
        TAILQ_INIT(&a->strangers);
        *at = a;
    }
    s->address = *at;
    s->address->n++;
    return 0;
}

/* ---- keys ---- */

static void leave_key(struct connections *c, struct seat *s)
{
    struct connections_key *k = s->key;
    s->key = NULL;
    if (!k)
        return;
    c->n_known--;
    if (--k->n > 0)
        return;
    struct connections_key **at = &c->keys[k->who % PLACES];
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    free(k);
}

static int enter_key(struct connections *c, struct seat *s, uint64_t who)
{
    if (s->key && s->key->who == who)
        return 0;
    struct connections_key **at = &c->keys[who % PLACES];
    while (*at && (*at)->who != who)
        at = &(*at)->next;
    if (*at && (*at)->n >= c->limits.per_key)
        return -EAGAIN;
    if (!*at) {
        *at = calloc(1, sizeof(**at));
        if (!*at)
            return -ENOMEM;
        (*at)->who = who;
    }
    struct connections_key *k = *at;
    k->n++; /* before leaving the old key: both may be the same */
    c->n_known++;
    leave_key(c, s);
    s->key = k;
    return 0;
}

/* ---- seats ---- */

static void stop_waiting(struct connections *c, struct seat *s)
{
    if (!s->waits)
        return;
    s->waits = false;
    c->n_waiting--;
    if (s->key)
        return;
    TAILQ_REMOVE(&c->waiting, s, all);
    if (s->address)
        TAILQ_REMOVE(&s->address->strangers, s, same);
}

static void stop_working(struct connections *c, struct seat *s)
{
    if (s->works && !s->key) {
        c->strangers--;
        TAILQ_REMOVE(&c->working, s, all);
    }
    s->works = false;
}

static void leave(struct connections *c, struct seat *s)
{
    if (!s->taken)
        return;
    stop_waiting(c, s);
    stop_working(c, s);
    c->n_upgraded -= s->upgraded;
    if (s->key)
        s->key->upgraded -= s->upgraded;
    if (s->address)
        s->address->upgraded -= s->upgraded;
    leave_key(c, s);
    leave_address(c, s);
    s->taken = s->upgraded = false;
    c->n--;
}

static int enter(struct connections *c, struct seat *s, const struct sockaddr *peer,
                 struct seat **ret_victim)
{
    struct seat *victim = NULL;
    uint64_t net[2];
    bool counted = net_of(peer, net);
    const struct connections_address *a = counted ? *place_of(c, net) : NULL;
    if (a && a->n >= c->limits.per_address) {
        victim = TAILQ_FIRST(&a->strangers);
        if (!victim)
            return -EAGAIN;
    } else if (c->n >= c->limits.total) {
        victim = TAILQ_FIRST(&c->waiting);
        if (!victim)
            return -EAGAIN;
    }
    int r = counted ? enter_address(c, s, net) : 0;
    if (r < 0)
        return r;
    s->taken = true;
    c->n++;
    if (victim)
        stop_waiting(c, victim); /* no other connection gets the same victim */
    *ret_victim = victim;
    return 0;
}

int connections_enter(struct connections *c, struct seat *s, const struct sockaddr *peer,
                      struct seat **ret_victim)
{
    *ret_victim = NULL;
    (void)pthread_mutex_lock(&c->lock);
    int r = enter(c, s, peer, ret_victim);
    (void)pthread_mutex_unlock(&c->lock);
    return r;
}

void connections_wait(struct connections *c, struct seat *s)
{
    (void)pthread_mutex_lock(&c->lock);
    if (!s->waits) {
        s->waits = true;
        c->n_waiting++;
        if (!s->key)
            TAILQ_INSERT_TAIL(&c->waiting, s, all);
        if (!s->key && s->address)
            TAILQ_INSERT_TAIL(&s->address->strangers, s, same);
    }
    (void)pthread_mutex_unlock(&c->lock);
}

void connections_wake(struct connections *c, struct seat *s)
{
    (void)pthread_mutex_lock(&c->lock);
    stop_waiting(c, s);
    (void)pthread_mutex_unlock(&c->lock);
}

/* Cut the stranger that has worked for longest: slow clients without a key must not keep out
 * others without one, or callers whose key is not read yet. */
static int make_way(struct connections *c)
{
    struct seat *first = TAILQ_FIRST(&c->working);
    if (!first || clock_mono_ms() - first->since_ms < GIVES_WAY_MS)
        return -EAGAIN;
    c->cut(first);
    stop_working(c, first);
    return 0;
}

static int work_unknown(struct connections *c, struct seat *s)
{
    if (s->works && !s->key)
        return 0;
    if (c->strangers >= c->limits.strangers && make_way(c) < 0)
        return -EAGAIN;
    leave_key(c, s);
    c->strangers++;
    s->since_ms = clock_mono_ms();
    s->works = true;
    TAILQ_INSERT_TAIL(&c->working, s, all);
    return 0;
}

static int work(struct connections *c, struct seat *s, uint64_t who)
{
    if (!who)
        return work_unknown(c, s);
    if (!s->key)
        stop_working(c, s);
    int r = enter_key(c, s, who);
    s->works = r >= 0;
    return r;
}

int connections_work(struct connections *c, struct seat *s, uint64_t who)
{
    (void)pthread_mutex_lock(&c->lock);
    int r = work(c, s, who);
    (void)pthread_mutex_unlock(&c->lock);
    return r;
}

void connections_rest(struct connections *c, struct seat *s)
{
    (void)pthread_mutex_lock(&c->lock);
    stop_working(c, s);
    (void)pthread_mutex_unlock(&c->lock);
}

/* Whether so many upgraded ones leave enough of `most` seats to requests. */
static bool may_upgrade(unsigned upgraded, unsigned most)
{
    unsigned kept = most / KEPT_PART ? most / KEPT_PART : most > 1;
    return upgraded < most - kept;
}

static int upgrade(struct connections *c, struct seat *s)
{
    if (s->upgraded)
        return 0;
    if (c->n_upgraded >= (c->limits.total + 1) / 2 ||
        (s->key && !may_upgrade(s->key->upgraded, c->limits.per_key)) ||
        (s->address && !may_upgrade(s->address->upgraded, c->limits.per_address)))
        return -EAGAIN;
    c->n_upgraded++;
    if (s->key)
        s->key->upgraded++;
    if (s->address)
        s->address->upgraded++;
    s->upgraded = true;
    return 0;
}

int connections_upgrade(struct connections *c, struct seat *s)
{
    (void)pthread_mutex_lock(&c->lock);
    int r = upgrade(c, s);
    (void)pthread_mutex_unlock(&c->lock);
    return r;
}

void connections_leave(struct connections *c, struct seat *s)
{
    (void)pthread_mutex_lock(&c->lock);
    leave(c, s);
    (void)pthread_mutex_unlock(&c->lock);
}

void connections_count(struct connections *c, struct connections_counts *counts)
{
    (void)pthread_mutex_lock(&c->lock);
    counts->total += c->n;
    counts->waiting += c->n_waiting;
    counts->without_key += c->n - c->n_known;
    counts->upgraded += c->n_upgraded;
    (void)pthread_mutex_unlock(&c->lock);
}

bool connections_known(const struct seat *s)
{
    return s->key != NULL;
}
