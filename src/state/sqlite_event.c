#include "state/sqlite.h"

int store_event_add(struct store *store, const struct store_event *row, int64_t *ret_seq,
                    struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_EVENT_ADD);
    query_int(&q, row->time_ms);
    query_text(&q, row->owner);
    query_text(&q, row->sandbox);
    query_text(&q, row->type);
    query_text(&q, row->data);
    (void)query_step(&q);
    int64_t seq = q.rc == SQLITE_OK ? sqlite3_last_insert_rowid(store->writer.db) : 0;
    int r = query_done(&q, err, "record an event");
    if (r >= 0)
        *ret_seq = seq;
    return r;
}

int store_event_each(struct store *store, const char *owner, const char *sandbox, int64_t since,
                     unsigned limit, store_event_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    query_begin(&q, &store->reader, sandbox ? STMT_EVENT_OF : STMT_EVENT_EACH);
    query_int(&q, since);
    query_text(&q, owner);
    if (sandbox)
        query_text(&q, sandbox);
    query_int(&q, limit);
    int stop = 0;
    while (stop == 0 && query_step(&q) > 0) {
        struct store_event row = {
            .seq = query_col_int(&q, 0),
            .time_ms = query_col_int(&q, 1),
            .owner = query_col(&q, 2),
            .sandbox = query_col(&q, 3),
            .type = query_col(&q, 4),
            .data = query_col(&q, 5),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the events");
    return r < 0 ? r : stop;
}

int store_event_last(struct store *store, int64_t *ret_seq, struct err *err)
{
    struct query q;
    int64_t seq = 0;
    query_begin(&q, &store->reader, STMT_EVENT_LAST);
    if (query_step(&q) > 0)
        seq = query_col_int(&q, 0);
    int r = query_done(&q, err, "read the last event");
    if (r >= 0)
        *ret_seq = seq;
    return r;
}

int store_event_prune(struct store *store, unsigned keep, struct err *err)
{
    int r = 0, removed = 1;
    while (r >= 0 && removed > 0) {
        struct query q;
        query_begin(&q, &store->writer, STMT_EVENT_PRUNE);
        query_int(&q, keep);
        (void)query_step(&q);
        removed = q.rc == SQLITE_OK ? sqlite3_changes(store->writer.db) : 0;
        r = query_done(&q, err, "forget old events");
    }
    return r;
}
