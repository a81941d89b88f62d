#include "state/sqlite.h"

int store_pass_put(struct store *store, const struct store_pass *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_PASS_PUT);
    query_text(&q, row->id);
    query_text(&q, row->sandbox);
    query_text(&q, row->owner);
    query_text(&q, row->hash);
    query_text(&q, row->data);
    query_int(&q, row->port);
    query_int(&q, row->created_ms);
    query_int(&q, row->expires_ms);
    return query_run(&q, err, "record a preview token");
}

int store_pass_remove(struct store *store, const char *id, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_PASS_REMOVE);
    query_text(&q, id);
    return query_run(&q, err, "forget a preview token");
}

int store_pass_prune(struct store *store, int64_t before_ms, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_PASS_PRUNE);
    query_int(&q, before_ms);
    return query_run(&q, err, "forget preview tokens");
}

int store_pass_each(struct store *store, store_pass_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_PASS_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_pass row = {
            .id = query_col(&q, 0),
            .sandbox = query_col(&q, 1),
            .owner = query_col(&q, 2),
            .hash = query_col(&q, 3),
            .data = query_col(&q, 4),
            .port = query_col_int(&q, 5),
            .created_ms = query_col_int(&q, 6),
            .expires_ms = query_col_int(&q, 7),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the preview tokens");
    return r < 0 ? r : stop;
}

int store_alias_put(struct store *store, const struct store_alias *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_ALIAS_PUT);
    query_text(&q, row->name);
    query_text(&q, row->owner);
    query_text(&q, row->sandbox);
    query_int(&q, row->port);
    query_int(&q, row->created_ms);
    return query_run(&q, err, "record a name");
}

int store_alias_remove(struct store *store, const char *name, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_ALIAS_REMOVE);
    query_text(&q, name);
    return query_run(&q, err, "forget a name");
}

int store_alias_each(struct store *store, store_alias_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_ALIAS_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_alias row = {
            .name = query_col(&q, 0),
            .owner = query_col(&q, 1),
            .sandbox = query_col(&q, 2),
            .port = query_col_int(&q, 3),
            .created_ms = query_col_int(&q, 4),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the names");
    return r < 0 ? r : stop;
}
