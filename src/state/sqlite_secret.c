#include "state/sqlite.h"

int store_secret_put(struct store *store, const struct store_secret *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_SECRET_PUT);
    query_text(&q, row->id);
    query_text(&q, row->owner);
    query_text(&q, row->name);
    query_int(&q, row->version);
    query_int(&q, row->created_ms);
    query_int(&q, row->updated_ms);
    query_text(&q, row->metadata);
    query_text(&q, row->value);
    return query_run(&q, err, "record a secret");
}

int store_secret_remove(struct store *store, const char *id, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_SECRET_REMOVE);
    query_text(&q, id);
    return query_run(&q, err, "forget a secret");
}

int store_secret_each(struct store *store, store_secret_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_SECRET_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_secret row = {
            .id = query_col(&q, 0),
            .owner = query_col(&q, 1),
            .name = query_col(&q, 2),
            .version = query_col_int(&q, 3),
            .created_ms = query_col_int(&q, 4),
            .updated_ms = query_col_int(&q, 5),
            .metadata = query_col(&q, 6),
            .value = query_col(&q, 7),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the secrets");
    return r < 0 ? r : stop;
}
