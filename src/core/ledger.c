#include "core/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/count.h"
#include "core/denials.h"
#include "core/table.h"
#include "core/wait.h"

#define LOG_MODULE "network"
#define GATHER_MS 200 /* what comes together in this time is written together */
#define RECORDS_MAX 4096
#define TALLIES_MAX 65536
#define SETTLE_MS 2000
#define PRUNE_MS (3600 * 1000ll)

struct ledger_item {
    struct ledger_item *next;
    bool is_tally;
    char owner[OWNER_MAX]; /* "": it was gone when this came */
    union {
        struct broker_record record;
        struct broker_tally tally;
    };
};

static const char *sandbox_of(const struct ledger_item *i)
{
    return i->is_tally ? i->tally.sandbox : i->record.sandbox;
}

/* ---- the queue ---- */

static void find_owner(struct core *core, const char *sandbox, char out[OWNER_MAX])
{
    (void)pthread_mutex_lock(&core->table.lock);
    const struct box *b = box_find(&core->table, NULL, sandbox);
    if (b)
        memcpy(out, b->s.owner, OWNER_MAX);
    (void)pthread_mutex_unlock(&core->table.lock);
}

static void enqueue(struct core *core, const struct ledger_item *item)
{
    struct ledger *l = &core->ledger;
    struct ledger_item *i = malloc(sizeof(*i));
    if (!i)
        return;
    *i = *item;
    i->next = NULL;
    find_owner(core, sandbox_of(i), i->owner);
    (void)pthread_mutex_lock(&l->lock);
    bool room = l->n_items < (i->is_tally ? TALLIES_MAX : RECORDS_MAX) && l->started;
    if (room) {
        *l->last = i;
        l->last = &i->next;
        l->n_items++;
        l->queued++;
        (void)pthread_cond_signal(&l->more);
    } else {
        l->dropped++;
    }
    (void)pthread_mutex_unlock(&l->lock);
    if (!room)
        free(i);
}

void ledger_record(struct core *core, const struct broker_record *rec)
{
    enqueue(core, &(struct ledger_item){ .record = *rec });
}

void ledger_tally(struct core *core, const struct broker_tally *tally)
{
    enqueue(core, &(struct ledger_item){ .is_tally = true, .tally = *tally });
}

void ledger_new_broker(struct core *core)
{
    atomic_store(&core->ledger.broker_ms, clock_now_ms());
}

bool ledger_is_open(struct core *core, const struct broker_record *rec)
{
    /* Flows are numbered from the moment of a broker's first one on. */
    return rec->open && (int64_t)(rec->flow >> 20) >= atomic_load(&core->ledger.broker_ms);
}

/* ---- writing ---- */

/* An entry of something that goes on is written over; once it is over it becomes the latest. */
static int write_record(struct ledger *l, struct account *a, const struct broker_record *rec)
{
    struct ledger_flow *f = &l->flows[rec->flow % LEDGER_FLOWS];
    bool known = rec->flow && f->flow == rec->flow;
    uint64_t number = 0;
    if (known && rec->open && account_relog(a, f->number, rec) == 0)
        return 0;
    if (known)
        (void)account_unlog(a, f->number);
    int r = account_log(a, rec, &number);
    if (rec->flow && r == 0 && (known || rec->open))
        *f = (struct ledger_flow){ rec->open ? rec->flow : 0, number };
    return r;
}

static void count(struct core *core, const struct broker_tally *t)
{
    struct network_counts *c = &core->ledger.counts[t->preview ? 1 : 0];
    if (t->binding[0])
        return;
    atomic_fetch_add(&c->sent_bytes, t->sent_bytes);
    atomic_fetch_add(&c->received_bytes, t->received_bytes);
    atomic_fetch_add(&c->connections, t->connections);
    atomic_fetch_add(&c->denied, t->denied);
}

struct group {
    struct ledger_item **items; /* of one sandbox, in order */
    size_t n;
};

static int write_account(struct core *core, const struct group *g, uint64_t *rx, uint64_t *tx)
{
    struct ledger *l = &core->ledger;
    struct account a;
    const char *owner =
        g->items[g->n - 1]->owner[0] ? g->items[g->n - 1]->owner : g->items[0]->owner;
    const char *sandbox = sandbox_of(g->items[0]);
    char whose[OWNER_MAX] = "";
    (void)pthread_mutex_lock(&l->io);
    uint64_t before = accounts_bytes(core, sandbox);
    int r = account_open(&a, l->dir, sandbox, owner[0] ? owner : NULL);
    if (r >= 0)
        memcpy(whose, a.head.owner, sizeof(whose));
    for (size_t i = 0; r >= 0 && i < g->n; i++) {
        const struct ledger_item *item = g->items[i];
        if (!item->is_tally) {
            r = write_record(l, &a, &item->record);
            continue;
        }
        if (item->tally.binding[0]) {
            r = account_add_use(&a, &item->tally, clock_now_ms());
            continue;
        }
        r = account_add(&a, &item->tally, clock_now_ms());
        *rx += item->tally.received_bytes;
        *tx += item->tally.sent_bytes;
    }
    int closed = account_close(&a);
    if (whose[0])
        accounts_changed(core, sandbox, whose, before, accounts_bytes(core, sandbox));
    (void)pthread_mutex_unlock(&l->io);
    return r < 0 ? r : closed;
}

static void write_group(struct core *core, const struct group *g)
{
    uint64_t rx = 0, tx = 0;
    const char *sandbox = sandbox_of(g->items[0]);
    int r = write_account(core, g, &rx, &tx);
    if (r < 0 && r != -ENOENT)
        log_warn("what a network carried was not written down sandbox=%s err=%s", sandbox,
                 strerror(-r));
    if (rx || tx)
        usage_carried(core, sandbox, g->items[0]->owner, rx, tx);
    for (size_t i = 0; i < g->n; i++)
        if (g->items[i]->is_tally)
            count(core, &g->items[i]->tally);
        else if (!g->items[i]->record.allowed && g->items[i]->owner[0])
            denials_note(core, g->items[i]->owner, &g->items[i]->record);
}

static int by_sandbox(const void *va, const void *vb)
{
    const struct ledger_item *a = *(struct ledger_item *const *)va;
    const struct ledger_item *b = *(struct ledger_item *const *)vb;
    return strcmp(sandbox_of(a), sandbox_of(b)); /* glibc's qsort keeps the order of equals */
}

static void write_all(struct core *core, struct ledger_item *first, size_t n)
{
    struct ledger_item **all = calloc(n, sizeof(struct ledger_item *));
    size_t at = 0;
    for (struct ledger_item *i = first; all && i; i = i->next)
        all[at++] = i;
    if (all)
        qsort(all, at, sizeof(struct ledger_item *), by_sandbox);
    for (size_t from = 0, to; from < at; from = to) {
        for (to = from + 1; to < at && by_sandbox(&all[from], &all[to]) == 0;)
            to++;
        write_group(core, &(struct group){ all + from, to - from });
    }
    free(all);
    while (first) {
        struct ledger_item *next = first->next;
        free(first);
        first = next;
    }
}

/* ---- the thread ---- */

/* Waits for something to write, and then for more of it; false: it is time to end. */
static bool gather(struct ledger *l, int64_t until_ms)
{
    while (!l->first && !l->stop && !l->crowded && clock_mono_ms() < until_ms)
        (void)wait_until(&l->more, &l->lock, until_ms);
    int64_t since = clock_mono_ms();
    while (l->first && !l->stop && !l->hurried && clock_mono_ms() < since + GATHER_MS)
        (void)wait_until(&l->more, &l->lock, since + GATHER_MS);
    l->hurried = false;
    return l->first || !l->stop;
}

static void *run(void *ctx)
{
    struct core *core = ctx;
    struct ledger *l = &core->ledger;
    int64_t next_prune = clock_mono_ms();
    for (;;) {
        (void)pthread_mutex_lock(&l->lock);
        bool go = gather(l, next_prune);
        struct ledger_item *first = l->first;
        size_t n = l->n_items;
        uint64_t taken = l->queued;
        l->first = NULL;
        l->last = &l->first;
        l->n_items = 0;
        bool crowded = l->crowded;
        l->crowded = false;
        (void)pthread_mutex_unlock(&l->lock);
        if (!go)
            return NULL;
        if (first)
            write_all(core, first, n);
        (void)pthread_mutex_lock(&l->lock);
        l->written = taken;
        (void)pthread_cond_broadcast(&l->settled);
        (void)pthread_mutex_unlock(&l->lock);
        if (crowded || clock_mono_ms() >= next_prune) {
            accounts_prune(core);
            next_prune = clock_mono_ms() + PRUNE_MS;
        }
    }
}

void ledger_make_room(struct core *core)
{
    struct ledger *l = &core->ledger;
    (void)pthread_mutex_lock(&l->lock);
    l->crowded = true;
    (void)pthread_cond_signal(&l->more);
    (void)pthread_mutex_unlock(&l->lock);
}

int ledger_start(struct core *core, struct err *err)
{
    struct ledger *l = &core->ledger;
    if (l->dir < 0)
        return 0;
    int r = thread_start(&l->thread, run, core, err);
    l->started = r >= 0;
    return r;
}

void ledger_stop(struct core *core)
{
    struct ledger *l = &core->ledger;
    (void)pthread_mutex_lock(&l->lock);
    bool started = l->started;
    l->stop = true;
    l->started = false;
    (void)pthread_cond_signal(&l->more);
    (void)pthread_mutex_unlock(&l->lock);
    if (started)
        (void)pthread_join(l->thread, NULL);
    denials_done(core);
    if (l->dir >= 0)
        (void)close(l->dir);
    l->dir = -1;
}

/* ---- reading ---- */

void ledger_settle(struct core *core)
{
    struct ledger *l = &core->ledger;
    int64_t until = clock_mono_ms() + SETTLE_MS;
    (void)pthread_mutex_lock(&l->lock);
    uint64_t wanted = l->queued;
    while (l->started && l->written < wanted && clock_mono_ms() < until) {
        l->hurried = true;
        (void)pthread_cond_signal(&l->more);
        (void)wait_until(&l->settled, &l->lock, until);
    }
    (void)pthread_mutex_unlock(&l->lock);
}

void ledger_wait(struct core *core, int64_t until_ms)
{
    struct ledger *l = &core->ledger;
    (void)pthread_mutex_lock(&l->lock);
    uint64_t seen = l->written;
    while (l->started && l->written == seen && clock_mono_ms() < until_ms)
        if (wait_until(&l->settled, &l->lock, until_ms) == ETIMEDOUT)
            break;
    (void)pthread_mutex_unlock(&l->lock);
}

int ledger_enter(struct core *core, const char *sandbox, struct account *ret_account)
{
    struct ledger *l = &core->ledger;
    *ret_account = (struct account)ACCOUNT_INIT;
    (void)pthread_mutex_lock(&l->io);
    int r = l->dir < 0 ? -ENOENT : account_open(ret_account, l->dir, sandbox, NULL);
    if (r < 0)
        (void)pthread_mutex_unlock(&l->io);
    return r;
}

void ledger_leave(struct core *core, struct account *account)
{
    (void)account_close(account);
    (void)pthread_mutex_unlock(&core->ledger.io);
}

uint64_t ledger_spent(struct core *core, const char *sandbox)
{
    struct account a;
    ledger_settle(core);
    if (ledger_enter(core, sandbox, &a) < 0)
        return 0;
    uint64_t spent = a.head.egress.sent_bytes + a.head.egress.received_bytes;
    ledger_leave(core, &a);
    return spent;
}
