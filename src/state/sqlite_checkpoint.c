#include "state/sqlite.h"

int store_checkpoint_put(struct store *store, const struct store_checkpoint *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_CHECKPOINT_PUT);
    query_text(&q, row->id);
    query_text(&q, row->owner);
    query_text(&q, row->sandbox);
    query_text(&q, row->parent);
    query_text(&q, row->name);
    query_text(&q, row->comment);
    query_text(&q, row->metadata);
    query_text(&q, row->reason);
    query_text(&q, row->tree);
    query_text(&q, row->spec);
    query_int(&q, row->created_ms);
    query_int(&q, row->bytes);
    query_int(&q, row->memory_bytes);
    return query_run(&q, err, "record a checkpoint");
}

int store_checkpoint_remove(struct store *store, const char *id, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_CHECKPOINT_REMOVE);
    query_text(&q, id);
    return query_run(&q, err, "forget a checkpoint");
}

int store_checkpoint_each(struct store *store, store_checkpoint_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_CHECKPOINT_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_checkpoint row = {
            .id = query_col(&q, 0),
            .owner = query_col(&q, 1),
            .sandbox = query_col(&q, 2),
            .parent = query_col(&q, 3),
            .name = query_col(&q, 4),
            .comment = query_col(&q, 5),
            .metadata = query_col(&q, 6),
            .reason = query_col(&q, 7),
            .tree = query_col(&q, 8),
            .spec = query_col(&q, 9),
            .created_ms = query_col_int(&q, 10),
            .bytes = query_col_int(&q, 11),
            .memory_bytes = query_col_int(&q, 12),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the checkpoints");
    return r < 0 ? r : stop;
}
