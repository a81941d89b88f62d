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
    query_text(&q, row->bucket);
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
            .bucket = query_col(&q, 5),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the volumes");
    return r < 0 ? r : stop;
}

/* ---- checkpoints of volumes ---- */

int store_volume_checkpoint_put(struct store *store, const struct store_volume_checkpoint *row,
                                struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_VOLUME_CHECKPOINT_PUT);
    query_text(&q, row->id);
    query_text(&q, row->owner);
    query_text(&q, row->volume);
    query_text(&q, row->name);
    query_text(&q, row->comment);
    query_int(&q, row->created_ms);
    query_int(&q, row->bytes);
    return query_run(&q, err, "record a volume's checkpoint");
}

int store_volume_checkpoint_remove(struct store *store, const char *id, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_VOLUME_CHECKPOINT_REMOVE);
    query_text(&q, id);
    return query_run(&q, err, "forget a volume's checkpoint");
}

int store_volume_checkpoint_each(struct store *store, store_volume_checkpoint_fn *fn, void *ctx,
                                 struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_VOLUME_CHECKPOINT_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_volume_checkpoint row = {
            .id = query_col(&q, 0),
            .owner = query_col(&q, 1),
            .volume = query_col(&q, 2),
            .name = query_col(&q, 3),
            .comment = query_col(&q, 4),
            .created_ms = query_col_int(&q, 5),
            .bytes = query_col_int(&q, 6),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the checkpoints of volumes");
    return r < 0 ? r : stop;
}
