#include "state/sqlite.h"

int store_template_build_put(struct store *store, const struct store_template_build *row,
                             struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_TEMPLATE_BUILD_PUT);
    query_text(&q, row->id);
    query_text(&q, row->owner);
    query_text(&q, row->template);
    query_text(&q, row->tags);
    query_text(&q, row->step);
    query_text(&q, row->message);
    query_int(&q, row->state);
    query_int(&q, row->cpu_millis);
    query_int(&q, row->memory_bytes);
    query_int(&q, row->disk_bytes);
    query_int(&q, row->created_ms);
    query_int(&q, row->updated_ms);
    query_int(&q, row->finished_ms);
    return query_run(&q, err, "record a template's build");
}

int store_template_build_remove(struct store *store, const char *id, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_TEMPLATE_BUILD_REMOVE);
    query_text(&q, id);
    return query_run(&q, err, "forget a template's build");
}

int store_template_build_each(struct store *store, store_template_build_fn *fn, void *ctx,
                              struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_TEMPLATE_BUILD_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_template_build row = {
            .id = query_col(&q, 0),
            .owner = query_col(&q, 1),
            .template = query_col(&q, 2),
            .tags = query_col(&q, 3),
            .step = query_col(&q, 4),
            .message = query_col(&q, 5),
            .state = query_col_int(&q, 6),
            .cpu_millis = query_col_int(&q, 7),
            .memory_bytes = query_col_int(&q, 8),
            .disk_bytes = query_col_int(&q, 9),
            .created_ms = query_col_int(&q, 10),
            .updated_ms = query_col_int(&q, 11),
            .finished_ms = query_col_int(&q, 12),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the templates' builds");
    return r < 0 ? r : stop;
}
