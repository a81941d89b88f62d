#include "state/sqlite.h"

int store_image_put(struct store *store, const struct store_image *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_IMAGE_PUT);
    query_text(&q, row->name);
    query_text(&q, row->tree);
    query_text(&q, row->digest);
    query_int(&q, row->size_bytes);
    query_int(&q, row->created_ms);
    return query_run(&q, err, "record an image");
}

int store_image_remove(struct store *store, const char *name, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_IMAGE_REMOVE);
    query_text(&q, name);
    return query_run(&q, err, "forget an image");
}

int store_image_each(struct store *store, store_image_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_IMAGE_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_image row = {
            .name = query_col(&q, 0),
            .tree = query_col(&q, 1),
            .digest = query_col(&q, 2),
            .size_bytes = query_col_int(&q, 3),
            .created_ms = query_col_int(&q, 4),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the images");
    return r < 0 ? r : stop;
}
