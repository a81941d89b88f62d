#include "core/list.h"

#include <errno.h>
#include <string.h>

#include "core/row.h"
#include "core/table.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX 1000

void cursor_write(int64_t created_ms, const char *id, char out[CURSOR_SIZE])
{
    (void)snprintf(out, CURSOR_SIZE, "%llx-%.*s", (unsigned long long)created_ms, ID_LEN, id);
}

int cursor_read(const char *text, int64_t *ret_created_ms, char ret_id[ID_SIZE])
{
    uint64_t ms = 0;
    size_t n = 0;
    for (; text[n] && text[n] != '-'; n++) {
        char c = text[n];
        bool digit = c >= '0' && c <= '9', letter = c >= 'a' && c <= 'f';
        if (n == 15 || (!digit && !letter)) /* 15 digits: below INT64_MAX */
            return -EINVAL;
        ms = ms << 4 | (uint64_t)(digit ? c - '0' : c - 'a' + 10);
    }
    if (n == 0 || text[n] != '-' || !id_valid(text + n + 1))
        return -EINVAL;
    *ret_created_ms = (int64_t)ms;
    memcpy(ret_id, text + n + 1, ID_SIZE);
    return 0;
}

struct gather {
    const struct sandbox_filter *filter;
    struct sandbox *items; /* room for `max` */
    size_t n, max;
};

static bool matches(const struct sandbox_filter *f, const struct sandbox *s)
{
    unsigned states = f->states ? f->states : ~(1u << SANDBOX_GONE);
    if (!(states & 1u << sandbox_shown(s)))
        return false;
    if (f->name && (!s->spec.name || strcmp(s->spec.name, f->name) != 0))
        return false;
    const char *made_from = s->spec.template ? s->spec.template : s->spec.image;
    if (f->template && strcmp(made_from, f->template) != 0)
        return false;
    if (s->started_ms < f->started_ms)
        return false;
    for (size_t i = 0; i < f->metadata.n; i++) {
        const char *value = pairs_get(&s->spec.metadata, f->metadata.names[i]);
        if (!value || strcmp(value, f->metadata.values[i]) != 0)
            return false;
    }
    return true;
}

/* Those in memory, from behind (created_ms, id). */
static int gather_live(struct core *core, const char *owner, struct gather *g, int64_t created_ms,
                       const char *id)
{
    struct table *t = &core->table;
    int r = 0;
    (void)pthread_mutex_lock(&t->lock);
    size_t at = box_after(t, created_ms, id);
    if (!g->filter->ascending) /* `at` counts those up to and with the place itself */
        while (at > 0 && t->sorted[at - 1]->s.created_ms == created_ms &&
               strcmp(t->sorted[at - 1]->s.id, id) >= 0)
            at--;
    while (r >= 0 && g->n < g->max && (g->filter->ascending ? at < t->n : at > 0)) {
        const struct sandbox *s = &t->sorted[g->filter->ascending ? at++ : --at]->s;
        if (strcmp(s->owner, owner) != 0 || !matches(g->filter, s))
            continue;
        r = sandbox_copy(s, &g->items[g->n]);
        if (r >= 0)
            g->n++;
    }
    (void)pthread_mutex_unlock(&t->lock);
    return r;
}

static int take_record(void *ctx, const struct store_sandbox *row)
{
    struct gather *g = ctx;
    struct sandbox s;
    int r = row_read(row, &s, NULL);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        return 0;
    if (!matches(g->filter, &s)) {
        sandbox_done(&s);
        return 0;
    }
    g->items[g->n++] = s;
    return g->n == g->max;
}

static int compare_up(const void *pa, const void *pb)
{
    const struct sandbox *a = pa, *b = pb;
    if (a->created_ms != b->created_ms)
        return a->created_ms < b->created_ms ? -1 : 1;
    return strcmp(a->id, b->id);
}

static int compare_down(const void *pa, const void *pb)
{
    return compare_up(pb, pa);
}

int sandbox_list(struct core *core, const char *owner, const struct sandbox_filter *filter,
                 struct sandbox_list *ret_list, struct err *err)
{
    int64_t ms = filter->ascending ? -1 : INT64_MAX;
    char id[ID_SIZE] = "";
    if (filter->cursor && cursor_read(filter->cursor, &ms, id) < 0)
        return err_fail(err, FAIL_INVALID_QUERY, "'cursor' is not one that an earlier list gave");
    size_t limit = filter->limit ? filter->limit : LIMIT_DEFAULT;
    if (limit > LIMIT_MAX)
        limit = LIMIT_MAX;

    bool gone = filter->states & 1u << SANDBOX_GONE;
    struct sandbox_list list = { .items = calloc(2 * (limit + 1), sizeof(*list.items)) };
    if (!list.items)
        return err_set(err, ENOMEM, "cannot allocate a list");
    /* One more than asked for, from each source: it tells whether there is more. */
    struct gather g = { .filter = filter, .items = list.items, .max = limit + 1 };
    int r = gather_live(core, owner, &g, ms, id);
    if (r < 0)
        r = err_set(err, -r, "cannot allocate a list");
    list.n = g.n;
    if (r >= 0 && gone) {
        g = (struct gather){ .filter = filter, .items = list.items + list.n, .max = limit + 1 };
        r = store_sandbox_gone_list(core->store, owner, filter->ascending, ms, id, take_record, &g,
                                    err);
        list.n += g.n;
        qsort(list.items, list.n, sizeof(*list.items),
              filter->ascending ? compare_up : compare_down);
    }
    if (r >= 0 && list.n > limit) {
        char cursor[CURSOR_SIZE];
        cursor_write(list.items[limit - 1].created_ms, list.items[limit - 1].id, cursor);
        list.next_cursor = strdup(cursor);
        if (!list.next_cursor)
            r = err_set(err, ENOMEM, "cannot allocate a list");
        while (list.n > limit)
            sandbox_done(&list.items[--list.n]);
    }
    if (r < 0) {
        sandbox_list_done(&list);
        return r;
    }
    *ret_list = list;
    return 0;
}

void sandbox_list_done(struct sandbox_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        sandbox_done(&list->items[i]);
    free(list->items);
    free(list->next_cursor);
    *list = (struct sandbox_list){ NULL, 0, NULL };
}

int sandbox_ids(struct core *core, char (**ret_ids)[ID_SIZE], size_t *ret_n)
{
    struct table *t = &core->table;
    (void)pthread_mutex_lock(&t->lock);
    char(*ids)[ID_SIZE] = calloc(t->n + 1, sizeof(*ids));
    size_t n = 0;
    for (; ids && n < t->n; n++)
        memcpy(ids[n], t->sorted[n]->s.id, ID_SIZE);
    (void)pthread_mutex_unlock(&t->lock);
    if (!ids)
        return -ENOMEM;
    *ret_ids = ids;
    *ret_n = n;
    return 0;
}
