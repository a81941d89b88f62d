#include "state/sqlite.h"

int store_usage_begin(struct store *store, struct err *err)
{
    return transaction_begin(store, err);
}

int store_usage_end(struct store *store, bool ok, struct err *err)
{
    return transaction_end(store, ok, err);
}

int store_usage_add(struct store *store, const struct store_usage *row, struct err *err)
{
    struct query q;
    query_begin_held(&q, &store->writer, STMT_USAGE_ADD);
    query_text(&q, row->owner);
    query_int(&q, row->hour);
    query_text(&q, row->sandbox);
    query_int(&q, row->cpu_us);
    query_real(&q, row->memory_gib_s);
    query_real(&q, row->disk_gib_s);
    query_int(&q, row->rx_bytes);
    query_int(&q, row->tx_bytes);
    return query_run(&q, err, "record usage");
}

int store_meter_put(struct store *store, const struct store_meter *row, struct err *err)
{
    struct query q;
    query_begin_held(&q, &store->writer, STMT_METER_PUT);
    query_text(&q, row->sandbox);
    query_int(&q, row->at_ms);
    query_int(&q, row->life_ms);
    query_int(&q, row->cpu_us);
    query_int(&q, row->memory_bytes);
    query_int(&q, row->disk_bytes);
    query_int(&q, row->rx_bytes);
    query_int(&q, row->tx_bytes);
    return query_run(&q, err, "record a meter");
}

int store_meter_remove(struct store *store, const char *sandbox, struct err *err)
{
    struct query q;
    query_begin_held(&q, &store->writer, STMT_METER_REMOVE);
    query_text(&q, sandbox);
    return query_run(&q, err, "forget a meter");
}

int store_meter_each(struct store *store, store_meter_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_METER_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_meter row = {
            .sandbox = query_col(&q, 0),
            .at_ms = query_col_int(&q, 1),
            .life_ms = query_col_int(&q, 2),
            .cpu_us = query_col_int(&q, 3),
            .memory_bytes = query_col_int(&q, 4),
            .disk_bytes = query_col_int(&q, 5),
            .rx_bytes = query_col_int(&q, 6),
            .tx_bytes = query_col_int(&q, 7),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the meters");
    return r < 0 ? r : stop;
}

/* The first four parameters, which all questions share. */
static void ask(struct query *q, struct store *store, enum stmt which,
                const struct store_usage_query *query)
{
    query_begin(q, &store->reader, which);
    query_text(q, query->owner);
    query_int(q, query->from_hour);
    query_int(q, query->to_hour);
    query_text(q, query->sandbox);
}

static int answer(struct query *q, const char *owner, store_usage_fn *fn, void *ctx,
                  struct err *err)
{
    int stop = 0;
    while (stop == 0 && query_step(q) > 0) {
        struct store_usage row = {
            .owner = owner,
            .sandbox = query_col(q, 0),
            .name = query_col(q, 1),
            .hour = query_col_int(q, 2),
            .cpu_us = query_col_int(q, 3),
            .memory_gib_s = query_col_real(q, 4),
            .disk_gib_s = query_col_real(q, 5),
            .rx_bytes = query_col_int(q, 6),
            .tx_bytes = query_col_int(q, 7),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(q, err, "read the usage");
    return r < 0 ? r : stop;
}

int store_usage_total(struct store *store, const struct store_usage_query *query,
                      store_usage_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    ask(&q, store, STMT_USAGE_TOTAL, query);
    return answer(&q, query->owner, fn, ctx, err);
}

int store_usage_sandboxes(struct store *store, const struct store_usage_query *query,
                          const char *after, unsigned limit, store_usage_fn *fn, void *ctx,
                          struct err *err)
{
    struct query q;
    ask(&q, store, STMT_USAGE_SANDBOXES, query);
    query_text(&q, after);
    query_int(&q, limit);
    return answer(&q, query->owner, fn, ctx, err);
}

int store_usage_steps(struct store *store, const struct store_usage_query *query, unsigned step,
                      store_usage_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    ask(&q, store, STMT_USAGE_STEPS, query);
    query_int(&q, step);
    return answer(&q, query->owner, fn, ctx, err);
}

int store_usage_prune(struct store *store, int64_t before_hour, struct err *err)
{
    int r = 0, removed = 1;
    while (r >= 0 && removed > 0) {
        struct query q;
        query_begin(&q, &store->writer, STMT_USAGE_PRUNE);
        query_int(&q, before_hour);
        (void)query_step(&q);
        removed = q.rc == SQLITE_OK ? sqlite3_changes(store->writer.db) : 0;
        r = query_done(&q, err, "forget old usage");
    }
    return r;
}
