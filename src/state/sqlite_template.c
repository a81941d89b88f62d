#include "state/sqlite.h"

int store_template_put(struct store *store, const struct store_template *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_TEMPLATE_PUT);
    query_text(&q, row->owner);
    query_text(&q, row->name);
    query_text(&q, row->id);
    query_int(&q, row->public);
    query_int(&q, row->warm);
    query_int(&q, row->created_ms);
    query_int(&q, row->updated_ms);
    query_text(&q, row->ports);
    query_text(&q, row->spec);
    return query_run(&q, err, "record a template");
}

int store_template_remove(struct store *store, const char *owner, const char *name, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_TEMPLATE_REMOVE);
    query_text(&q, owner);
    query_text(&q, name);
    return query_run(&q, err, "forget a template");
}

int store_template_each(struct store *store, store_template_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_TEMPLATE_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_template row = {
            .owner = query_col(&q, 0),
            .name = query_col(&q, 1),
            .id = query_col(&q, 2),
            .public = query_col_int(&q, 3) != 0,
            .warm = query_col_int(&q, 4),
            .created_ms = query_col_int(&q, 5),
            .updated_ms = query_col_int(&q, 6),
            .ports = query_col(&q, 7),
            .spec = query_col(&q, 8),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the templates");
    return r < 0 ? r : stop;
}
