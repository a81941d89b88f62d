#include "core/event.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/private.h"
#include "core/wait.h"

#define LOG_MODULE "event"
#define LIMIT_DEFAULT 100
#define LIMIT_MAX 1000

int events_load(struct core *core, struct err *err)
{
    return store_event_last(core->store, &core->feed.last, err);
}

void events_close(struct core *core)
{
    struct feed *f = &core->feed;
    (void)pthread_mutex_lock(&f->lock);
    f->closed = true;
    (void)pthread_cond_broadcast(&f->more);
    (void)pthread_mutex_unlock(&f->lock);
}

void event_emit(struct core *core, const char *owner, const char *sandbox, const char *type,
                const char *data)
{
    struct err err = ERR_INIT;
    struct feed *f = &core->feed;
    struct store_event row = {
        .time_ms = clock_now_ms(),
        .owner = owner,
        .sandbox = sandbox ? sandbox : "",
        .type = type,
        .data = data ? data : "{}",
    };
    int64_t seq;
    if (store_event_add(core->store, &row, &seq, &err) < 0) {
        log_warn("event not recorded type=%s sandbox=%s err=\"%s\"", type, row.sandbox, err.msg);
        return;
    }
    (void)pthread_mutex_lock(&f->lock);
    if (seq > f->last)
        f->last = seq;
    if (f->waiting)
        (void)pthread_cond_broadcast(&f->more);
    (void)pthread_mutex_unlock(&f->lock);
}

/* The newest event's number once it is above `since`, or after the wait. */
static int64_t wait_for(struct feed *f, int64_t since, int64_t until_ms)
{
    (void)pthread_mutex_lock(&f->lock);
    f->waiting++;
    while (!f->closed && f->last <= since)
        if (wait_until(&f->more, &f->lock, until_ms) == ETIMEDOUT)
            break;
    f->waiting--;
    int64_t last = f->last;
    (void)pthread_mutex_unlock(&f->lock);
    return last;
}

struct gather {
    struct event_list list;
    size_t cap;
};

static int take_row(void *ctx, const struct store_event *row)
{
    struct gather *g = ctx;
    if (g->list.n == g->cap) {
        size_t cap = g->cap ? g->cap * 2 : 16;
        struct event *items = reallocarray(g->list.items, cap, sizeof(*items));
        if (!items)
            return -ENOMEM;
        g->list.items = items;
        g->cap = cap;
    }
    struct event *e = &g->list.items[g->list.n];
    *e = (struct event){ .seq = row->seq, .time_ms = row->time_ms, .data = strdup(row->data) };
    if (!e->data)
        return -ENOMEM;
    (void)snprintf(e->type, sizeof(e->type), "%s", row->type);
    (void)snprintf(e->owner, sizeof(e->owner), "%s", row->owner);
    (void)snprintf(e->sandbox, sizeof(e->sandbox), "%s", row->sandbox);
    g->list.n++;
    return 0;
}

int event_read(struct core *core, const char *owner, const char *sandbox, int64_t since,
               unsigned limit, int wait_ms, struct event_list *ret_list, struct err *err)
{
    struct gather g = { .list = { .next = since < 0 ? 0 : since } };
    int64_t until = clock_mono_ms() + wait_ms;
    limit = limit == 0 ? LIMIT_DEFAULT : limit > LIMIT_MAX ? LIMIT_MAX : limit;
    for (;;) {
        /* Read before the rows: what is recorded later than this is another call's. */
        int64_t last = wait_for(&core->feed, g.list.next, until);
        if (last <= g.list.next)
            break; /* nothing came */
        int r =
            store_event_each(core->store, owner, sandbox, g.list.next, limit, take_row, &g, err);
        if (r < 0) {
            event_list_done(&g.list);
            return r == -ENOMEM ? err_set(err, ENOMEM, "cannot allocate the events") : r;
        }
        int64_t newest = g.list.n ? g.list.items[g.list.n - 1].seq : 0;
        g.list.next = g.list.n == limit || newest > last ? newest : last;
        if (g.list.n)
            break;
    }
    *ret_list = g.list;
    return 0;
}

void event_list_done(struct event_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->items[i].data);
    free(list->items);
    list->items = NULL;
    list->n = 0;
}
