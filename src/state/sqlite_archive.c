#include "state/sqlite.h"

int store_archive_put(struct store *store, const struct store_archive *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_ARCHIVE_PUT);
    query_text(&q, row->checkpoint);
    query_int(&q, row->archived_ms);
    query_int(&q, row->bytes);
    query_text(&q, row->manifest);
    query_int(&q, row->away);
    return query_run(&q, err, "record an archive");
}

int store_archive_remove(struct store *store, const char *checkpoint, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_ARCHIVE_REMOVE);
    query_text(&q, checkpoint);
    return query_run(&q, err, "forget an archive");
}

int store_archive_each(struct store *store, store_archive_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_ARCHIVE_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_archive row = {
            .checkpoint = query_col(&q, 0),
            .archived_ms = query_col_int(&q, 1),
            .bytes = query_col_int(&q, 2),
            .manifest = query_col(&q, 3),
            .away = query_col_int(&q, 4),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the archives");
    return r < 0 ? r : stop;
}
