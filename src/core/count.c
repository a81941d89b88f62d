#include "core/count.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/idle.h"
#include "core/keeper.h"
#include "core/table.h"
#include "core/wait.h"

#define LOG_MODULE "usage"
#define HOUR_MS (3600 * 1000ll)
#define DAY_MS (24 * HOUR_MS)
#define GAP_ROUNDS 3       /* readings this many rounds apart have a gap between them */
#define INTERVAL_MS 10000  /* where no thread looks */
#define STOPPED_MS 60000   /* the disk of one that rests is counted on this often */
#define PENDING_MAX 100000 /* entries kept while the database takes none */

/* Something was used, and how far that counts. */
struct usage_entry {
    char id[ID_SIZE], owner[OWNER_MAX];
    int64_t from_ms, to_ms;
    struct usage_amount amount;
    struct meter after;
    bool gone; /* its meter is not needed any more */
};

/* ---- counting; the table's lock is held ---- */

static void push(struct core *core, const struct usage_entry *e)
{
    struct usage *u = &core->usage;
    if (u->n == u->cap) {
        size_t cap = u->cap ? u->cap * 2 : 64;
        struct usage_entry *p =
            cap <= PENDING_MAX ? reallocarray(u->pending, cap, sizeof(*p)) : NULL;
        if (!p)
            return; /* lost: the database has taken nothing for a long time */
        u->pending = p;
        u->cap = cap;
    }
    u->pending[u->n++] = *e;
}

/* What a counter has gone on by. */
static uint64_t since(uint64_t now, uint64_t *counted)
{
    uint64_t more = now > *counted ? now - *counted : 0;
    *counted += more;
    return more;
}

static void count(struct core *core, struct box *b, int64_t now, const struct meter_reading *r,
                  bool gone)
{
    struct usage_entry e = { .from_ms = b->meter.at_ms, .gone = gone };
    if (b->meter.at_ms == 0)
        return; /* it never ran */
    e.amount = meter_advance(&b->meter, now, r, core->usage.gap_ms);
    e.amount.rx_bytes = since(b->rx_bytes, &b->meter.rx_bytes);
    e.amount.tx_bytes = since(b->tx_bytes, &b->meter.tx_bytes);
    e.to_ms = b->meter.at_ms;
    e.after = b->meter;
    if (r && !r->dead && b->meter.running)
        idle_saw_cpu(b, now, r->cpu_us);
    if (r && !r->dead)
        samples_add(&b->samples, &(struct sample){ .at_ms = e.to_ms,
                                                   .span_ms = e.to_ms - e.from_ms,
                                                   .cpu_us = e.amount.cpu_us,
                                                   .memory_bytes = r->memory_bytes,
                                                   .disk_bytes = r->disk_bytes });
    memcpy(e.id, b->s.id, sizeof(e.id));
    memcpy(e.owner, b->s.owner, sizeof(e.owner));
    push(core, &e);
}

void usage_begun(struct core *core, struct box *b, int64_t now_ms, uint64_t cpu_us)
{
    count(core, b, now_ms, NULL, false); /* the disk of one that was stopped */
    meter_start(&b->meter, now_ms, cpu_us);
}

void usage_asleep(struct core *core, struct box *b, bool asleep, int64_t now_ms)
{
    count(core, b, now_ms, NULL, false);
    b->meter.asleep = asleep;
}

void usage_ended(struct core *core, struct box *b, const struct keeper_usage *last, bool gone)
{
    struct meter_reading r = { .cpu_us = last->cpu_us,
                               .memory_bytes = last->memory_bytes,
                               .disk_bytes = last->disk_bytes,
                               .dead = last->memory_bytes == 0 };
    bool known = b->meter.running && last->cpu_us > 0;
    count(core, b, clock_now_ms(), known ? &r : NULL, gone);
    meter_stop(&b->meter);
}

void usage_died(struct core *core, const char *id, const struct keeper_usage *last)
{
    struct meter_reading r = { .cpu_us = last->cpu_us,
                               .disk_bytes = last->disk_bytes,
                               .dead = true };
    (void)pthread_mutex_lock(&core->table.lock);
    struct box *b = box_find(&core->table, NULL, id);
    if (b && b->s.state == SANDBOX_RUNNING && b->meter.running && last->cpu_us > 0) {
        count(core, b, clock_now_ms(), &r, false);
        meter_stop(&b->meter);
    }
    (void)pthread_mutex_unlock(&core->table.lock);
}

void usage_carried(struct core *core, const char *id, const char *owner, uint64_t rx_bytes,
                   uint64_t tx_bytes)
{
    (void)pthread_mutex_lock(&core->table.lock);
    struct box *b = box_find(&core->table, NULL, id);
    if (b) {
        b->rx_bytes += rx_bytes;
        b->tx_bytes += tx_bytes;
        idle_saw_bytes(core, b, clock_now_ms());
    } else if (owner[0]) { /* its last words */
        struct usage_entry e = { .from_ms = clock_now_ms(), .gone = true };
        e.to_ms = e.from_ms;
        e.amount.rx_bytes = rx_bytes;
        e.amount.tx_bytes = tx_bytes;
        (void)snprintf(e.id, sizeof(e.id), "%s", id);
        (void)snprintf(e.owner, sizeof(e.owner), "%s", owner);
        push(core, &e);
    }
    (void)pthread_mutex_unlock(&core->table.lock);
}

/* ---- writing ---- */

/* A share of a whole of which so much is left; the last gets all of that. */
static uint64_t part(uint64_t *left, uint64_t whole, double share, bool last)
{
    uint64_t n = last ? *left : (uint64_t)((double)whole * share);
    n = n > *left ? *left : n;
    *left -= n;
    return n;
}

/* Shares what was used among the hours it was used in. */
static int write_hours(struct core *core, const struct usage_entry *e, struct err *err)
{
    int64_t whole = e->to_ms - e->from_ms;
    uint64_t cpu_left = e->amount.cpu_us;
    uint64_t rx_left = e->amount.rx_bytes, tx_left = e->amount.tx_bytes;
    int r = 0;
    for (int64_t at = e->from_ms; r >= 0;) {
        int64_t hour = at / HOUR_MS, end = (hour + 1) * HOUR_MS;
        bool last = end >= e->to_ms;
        double share = whole > 0 ? (double)((last ? e->to_ms : end) - at) / (double)whole : 1;
        struct store_usage row = {
            .owner = e->owner,
            .sandbox = e->id,
            .hour = hour,
            .cpu_us = (int64_t)part(&cpu_left, e->amount.cpu_us, share, last),
            .rx_bytes = (int64_t)part(&rx_left, e->amount.rx_bytes, share, last),
            .tx_bytes = (int64_t)part(&tx_left, e->amount.tx_bytes, share, last),
            .memory_gib_s = e->amount.memory_gib_s * share,
            .disk_gib_s = e->amount.disk_gib_s * share
        };
        r = store_usage_add(core->store, &row, err);
        if (last)
            break;
        at = end;
    }
    return r;
}

static int write_meter(struct core *core, const struct usage_entry *e, struct err *err)
{
    const struct meter *m = &e->after;
    if (e->gone)
        return store_meter_remove(core->store, e->id, err);
    struct store_meter row = {
        .sandbox = e->id,
        .at_ms = m->at_ms,
        .life_ms = m->life_ms,
        .cpu_us = (int64_t)m->cpu_us,
        .memory_bytes = m->memory_known ? (int64_t)m->memory_bytes : -1,
        .disk_bytes = m->disk_known ? (int64_t)m->disk_bytes : -1,
        .rx_bytes = (int64_t)m->rx_bytes,
        .tx_bytes = (int64_t)m->tx_bytes,
    };
    return store_meter_put(core->store, &row, err);
}

static int write_all(struct core *core, const struct usage_entry *entries, size_t n,
                     struct err *err)
{
    int r = store_usage_begin(core->store, err);
    if (r < 0)
        return r;
    for (size_t i = 0; r >= 0 && i < n; i++) {
        r = write_hours(core, &entries[i], err);
        if (r >= 0)
            r = write_meter(core, &entries[i], err);
    }
    int end = store_usage_end(core->store, r >= 0, err);
    return r < 0 ? r : end;
}

/* The database took none of it: it goes back before what has come since. */
static void put_back(struct core *core, struct usage_entry *entries, size_t n)
{
    struct usage *u = &core->usage;
    (void)pthread_mutex_lock(&core->table.lock);
    struct usage_entry *newer = u->pending;
    size_t n_newer = u->n;
    u->pending = entries;
    u->n = u->cap = n;
    for (size_t i = 0; i < n_newer; i++)
        push(core, &newer[i]);
    (void)pthread_mutex_unlock(&core->table.lock);
    free(newer);
}

int usage_flush(struct core *core, struct err *err)
{
    struct usage *u = &core->usage;
    int r = 0;
    (void)pthread_mutex_lock(&u->flush); /* one writer: a sandbox's entries stay in order */
    (void)pthread_mutex_lock(&core->table.lock);
    struct usage_entry *entries = u->pending;
    size_t n = u->n;
    u->pending = NULL;
    u->n = u->cap = 0;
    (void)pthread_mutex_unlock(&core->table.lock);
    if (n)
        r = write_all(core, entries, n, err);
    if (r < 0)
        put_back(core, entries, n);
    else
        free(entries);
    (void)pthread_mutex_unlock(&u->flush);
    return r;
}

/* ---- looking ---- */

struct look {
    char id[ID_SIZE];
    unsigned life;
    bool stat;
};

/* Its files take room, and nothing else. */
static bool rests_now(const struct box *b)
{
    return b->s.state == SANDBOX_STOPPED || b->s.state == SANDBOX_PAUSED;
}

/* Whom to look at this time. */
static size_t choose(struct core *core, struct look **ret_looks)
{
    struct table *t = &core->table;
    int64_t now = clock_now_ms();
    size_t n = 0;
    (void)pthread_mutex_lock(&t->lock);
    struct look *looks = calloc(t->n + 1, sizeof(*looks));
    for (size_t i = 0; looks && i < t->n; i++) {
        const struct box *b = t->sorted[i];
        bool runs = b->s.state == SANDBOX_RUNNING && b->meter.running;
        bool frozen = runs && b->s.frozen_ms != 0;
        bool rests = (frozen || rests_now(b)) && now - b->meter.at_ms >= STOPPED_MS;
        if ((!runs || frozen) && !rests)
            continue;
        memcpy(looks[n].id, b->s.id, ID_SIZE);
        looks[n].stat = (runs && !frozen) || !b->meter.disk_known;
        looks[n++].life = b->life;
    }
    (void)pthread_mutex_unlock(&t->lock);
    *ret_looks = looks;
    return n;
}

static void look_at(struct core *core, const struct look *look)
{
    struct keeper_usage usage = { 0 };
    struct meter_reading r = { 0 };
    bool seen = look->stat && keeper_ask_stat(core, look->id, &usage, NULL) >= 0;
    r.cpu_us = usage.cpu_us;
    r.memory_bytes = usage.memory_bytes;
    r.disk_bytes = usage.disk_bytes;
    (void)pthread_mutex_lock(&core->table.lock);
    struct box *b = box_find(&core->table, NULL, look->id);
    bool same = b && b->life == look->life && !b->starting &&
                (rests_now(b) || (b->s.state == SANDBOX_RUNNING && b->meter.running));
    /* A dead one answers with nothing: its end will be told with the last of its counters. */
    if (same && b->s.state == SANDBOX_RUNNING && seen && usage.cpu_us < b->meter.cpu_us)
        seen = false;
    if (same && (seen || !look->stat))
        count(core, b, clock_now_ms(), seen ? &r : NULL, false);
    (void)pthread_mutex_unlock(&core->table.lock);
}

void usage_look(struct core *core, const char *id)
{
    struct look look = { .stat = true };
    (void)pthread_mutex_lock(&core->table.lock);
    const struct box *b = box_find(&core->table, NULL, id);
    bool runs = b && b->s.state == SANDBOX_RUNNING && b->meter.running;
    if (runs) {
        memcpy(look.id, b->s.id, ID_SIZE);
        look.life = b->life;
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    if (runs)
        look_at(core, &look);
}

/* True: it is time to end. */
static bool pause_until(struct usage *u, int64_t until_ms)
{
    (void)pthread_mutex_lock(&u->lock);
    while (!u->stop && clock_mono_ms() < until_ms)
        (void)wait_until(&u->wake, &u->lock, until_ms);
    bool stop = u->stop;
    (void)pthread_mutex_unlock(&u->lock);
    return stop;
}

void usage_round(struct core *core, int64_t spread_ms)
{
    struct err err = ERR_INIT;
    _cleanup_free_ struct look *looks = NULL;
    size_t n = choose(core, &looks);
    int64_t began = clock_mono_ms();
    for (size_t i = 0; i < n; i++) {
        if (pause_until(&core->usage, began + spread_ms * (int64_t)i / (int64_t)n))
            return;
        look_at(core, &looks[i]);
    }
    if (usage_flush(core, &err) < 0)
        log_warn("usage is recorded later err=\"%s\"", err.msg);
}

static void *run(void *ctx)
{
    struct core *core = ctx;
    struct usage *u = &core->usage;
    int64_t next = clock_mono_ms() + u->interval_ms;
    while (!pause_until(u, next)) {
        usage_round(core, u->interval_ms * 9 / 10);
        next += u->interval_ms;
        if (next < clock_mono_ms())
            next = clock_mono_ms() + u->interval_ms / 10; /* a slow keeper gets its rest */
    }
    return NULL;
}

int usage_start(struct core *core, const struct core_config *config, struct err *err)
{
    struct usage *u = &core->usage;
    u->interval_ms = config->usage_interval_ms;
    u->keep_days = config->usage_keep_days;
    u->gap_ms = GAP_ROUNDS * (u->interval_ms ? u->interval_ms : INTERVAL_MS);
    if (u->interval_ms == 0)
        return 0;
    int r = thread_start(&u->thread, run, core, err);
    u->started = r >= 0;
    return r;
}

void usage_stop(struct core *core)
{
    struct usage *u = &core->usage;
    if (u->started) {
        (void)pthread_mutex_lock(&u->lock);
        u->stop = true;
        (void)pthread_cond_signal(&u->wake);
        (void)pthread_mutex_unlock(&u->lock);
        (void)pthread_join(u->thread, NULL);
        u->started = false;
    }
    if (core->store)
        (void)usage_flush(core, NULL);
    free(u->pending);
    u->pending = NULL;
    u->n = u->cap = 0;
}

void usage_prune(struct core *core)
{
    struct usage *u = &core->usage;
    struct err err = ERR_INIT;
    int64_t now = clock_now_ms(), last = atomic_load(&u->pruned_ms);
    if (u->keep_days == 0 || now - last < DAY_MS)
        return; /* it reads the whole table: once a day */
    atomic_store(&u->pruned_ms, now);
    if (store_usage_prune(core->store, now / HOUR_MS - (int64_t)u->keep_days * 24, &err) < 0)
        log_warn("old usage stays err=\"%s\"", err.msg);
}

/* ---- loading ---- */

static int load_row(void *ctx, const struct store_meter *row)
{
    struct core *core = ctx;
    struct box *b = box_find(&core->table, NULL, row->sandbox);
    if (!b)
        return 0;
    b->meter = (struct meter){
        .at_ms = row->at_ms,
        .life_ms = row->life_ms,
        .cpu_us = (uint64_t)row->cpu_us,
        .memory_known = row->memory_bytes >= 0,
        .memory_bytes = row->memory_bytes >= 0 ? (uint64_t)row->memory_bytes : 0,
        .disk_known = row->disk_bytes >= 0,
        .disk_bytes = row->disk_bytes >= 0 ? (uint64_t)row->disk_bytes : 0,
        .rx_bytes = (uint64_t)row->rx_bytes,
        .tx_bytes = (uint64_t)row->tx_bytes,
    };
    return 0;
}

int usage_load(struct core *core, struct err *err)
{
    struct table *t = &core->table;
    int r = store_meter_each(core->store, load_row, core, err);
    for (size_t i = 0; r >= 0 && i < t->n; i++) {
        struct box *b = t->sorted[i];
        struct meter *m = &b->meter;
        enum sandbox_state s = b->s.state;
        if (s == SANDBOX_CREATING || b->s.started_ms == 0)
            continue;
        if (m->at_ms == 0) /* nothing of it was written: count from its birth */
            m->at_ms = m->life_ms = b->s.started_ms;
        if (s == SANDBOX_STOPPED || s == SANDBOX_PAUSED || s == SANDBOX_RESUMING)
            continue;
        if (m->life_ms != b->s.started_ms) /* started again since */
            usage_begun(core, b, b->s.started_ms, 0);
        m->running = true;
    }
    return r;
}
