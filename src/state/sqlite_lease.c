#include "state/sqlite.h"

int store_lease_put(struct store *store, const struct store_lease *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_LEASE_PUT);
    query_text(&q, row->id);
    query_text(&q, row->sandbox);
    query_text(&q, row->reason);
    query_int(&q, row->created_ms);
    query_int(&q, row->until_ms);
    return query_run(&q, err, "record a lease");
}

int store_lease_remove(struct store *store, const char *id, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_LEASE_REMOVE);
    query_text(&q, id);
    return query_run(&q, err, "forget a lease");
}

int store_lease_prune(struct store *store, int64_t before_ms, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_LEASE_PRUNE);
    query_int(&q, before_ms);
    return query_run(&q, err, "forget leases");
}

int store_lease_each(struct store *store, store_lease_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_LEASE_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_lease row = {
            .id = query_col(&q, 0),
            .sandbox = query_col(&q, 1),
            .reason = query_col(&q, 2),
            .created_ms = query_col_int(&q, 3),
            .until_ms = query_col_int(&q, 4),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the leases");
    return r < 0 ? r : stop;
}
