#include "state/sqlite.h"

int store_layer_put(struct store *store, const struct store_layer *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_LAYER_PUT);
    query_text(&q, row->chain);
    query_text(&q, row->parent);
    query_text(&q, row->diff_id);
    query_text(&q, row->tree);
    query_text(&q, row->digest);
    query_text(&q, row->media_type);
    query_int(&q, row->compressed_bytes);
    query_int(&q, row->size_bytes);
    query_int(&q, row->kept);
    query_int(&q, row->created_ms);
    query_text(&q, row->owner);
    return query_run(&q, err, "record a layer");
}

int store_layer_remove(struct store *store, const char *chain, const char *tree, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_LAYER_REMOVE);
    query_text(&q, chain);
    query_text(&q, tree);
    return query_run(&q, err, "forget a layer");
}

int store_layer_each(struct store *store, store_layer_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_LAYER_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_layer row = {
            .chain = query_col(&q, 0),
            .parent = query_col(&q, 1),
            .diff_id = query_col(&q, 2),
            .tree = query_col(&q, 3),
            .digest = query_col(&q, 4),
            .media_type = query_col(&q, 5),
            .compressed_bytes = query_col_int(&q, 6),
            .size_bytes = query_col_int(&q, 7),
            .kept = query_col_int(&q, 8),
            .created_ms = query_col_int(&q, 9),
            .owner = query_col(&q, 10),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the layers");
    return r < 0 ? r : stop;
}

int store_content_put(struct store *store, const struct store_content *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_CONTENT_PUT);
    query_text(&q, row->digest);
    query_text(&q, row->chain);
    query_int(&q, row->created_ms);
    query_text(&q, row->manifest);
    query_text(&q, row->config);
    return query_run(&q, err, "record an image");
}

int store_content_remove(struct store *store, const char *digest, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_CONTENT_REMOVE);
    query_text(&q, digest);
    return query_run(&q, err, "forget an image");
}

int store_content_each(struct store *store, store_content_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_CONTENT_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_content row = {
            .digest = query_col(&q, 0),
            .chain = query_col(&q, 1),
            .created_ms = query_col_int(&q, 2),
            .manifest = query_col(&q, 3),
            .config = query_col(&q, 4),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the images");
    return r < 0 ? r : stop;
}

int store_name_put(struct store *store, const struct store_name *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_NAME_PUT);
    query_text(&q, row->owner);
    query_text(&q, row->name);
    query_text(&q, row->digest);
    query_int(&q, row->public);
    query_int(&q, row->created_ms);
    return query_run(&q, err, "name an image");
}

int store_name_remove(struct store *store, const char *owner, const char *name, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_NAME_REMOVE);
    query_text(&q, owner);
    query_text(&q, name);
    return query_run(&q, err, "forget an image's name");
}

int store_name_each(struct store *store, store_name_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_NAME_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_name row = {
            .owner = query_col(&q, 0),
            .name = query_col(&q, 1),
            .digest = query_col(&q, 2),
            .public = query_col_int(&q, 3),
            .created_ms = query_col_int(&q, 4),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the images' names");
    return r < 0 ? r : stop;
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
