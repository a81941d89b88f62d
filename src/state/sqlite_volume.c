#include "state/sqlite.h"

int store_volume_put(struct store *store, const struct store_volume *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_VOLUME_PUT);
    query_text(&q, row->id);
    query_text(&q, row->owner);
    query_text(&q, row->name);
    query_int(&q, row->size_bytes);
    query_int(&q, row->created_ms);
    return query_run(&q, err, "record a volume");
}

int store_volume_remove(struct store *store, const char *id, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_VOLUME_REMOVE);
    query_text(&q, id);
    return query_run(&q, err, "forget a volume");
}

int store_volume_each(struct store *store, store_volume_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_VOLUME_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_volume row = {
            .id = query_col(&q, 0),
            .owner = query_col(&q, 1),
            .name = query_col(&q, 2),
            .size_bytes = query_col_int(&q, 3),
            .created_ms = query_col_int(&q, 4),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the volumes");
    return r < 0 ? r : stop;
}
