#include "state/sqlite.h"

int store_replay_put(struct store *store, const struct store_replay *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_REPLAY_PUT);
    query_text(&q, row->owner);
    query_text(&q, row->key);
    query_text(&q, row->hash);
    query_int(&q, row->created_ms);
    return query_run(&q, err, "record a request");
}

int store_replay_made(struct store *store, const char *owner, const char *key, const char *made,
                      struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_REPLAY_MADE);
    query_text(&q, made);
    query_text(&q, owner);
    query_text(&q, key);
    return query_run(&q, err, "record what a request makes");
}

int store_replay_done(struct store *store, const struct store_replay *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_REPLAY_DONE);
    query_int(&q, row->status);
    query_text(&q, row->etag);
    query_text(&q, row->body);
    query_text(&q, row->owner);
    query_text(&q, row->key);
    return query_run(&q, err, "record an answer");
}

int store_replay_get(struct store *store, const char *owner, const char *key, store_replay_fn *fn,
                     void *ctx, struct err *err)
{
    struct query q;
    int stop = 0;
    /* The writing connection: what was recorded a moment ago must be seen. */
    query_begin(&q, &store->writer, STMT_REPLAY_GET);
    query_text(&q, owner);
    query_text(&q, key);
    if (query_step(&q) > 0) {
        struct store_replay row = {
            .owner = owner,
            .key = key,
            .hash = query_col(&q, 0),
            .made = query_col(&q, 1),
            .status = query_col_int(&q, 2),
            .etag = query_col(&q, 3),
            .body = query_col(&q, 4),
            .created_ms = query_col_int(&q, 5),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read a recorded request");
    return r < 0 ? r : stop;
}

int store_replay_remove(struct store *store, const char *owner, const char *key, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_REPLAY_REMOVE);
    query_text(&q, owner);
    query_text(&q, key);
    return query_run(&q, err, "forget a request");
}

int store_replay_prune(struct store *store, int64_t before_ms, const char *owner, unsigned keep,
                       struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_REPLAY_PRUNE);
    query_int(&q, before_ms);
    int r = query_run(&q, err, "forget old requests");
    if (r < 0)
        return r;
    query_begin(&q, &store->writer, STMT_REPLAY_TRIM);
    query_text(&q, owner);
    query_text(&q, owner);
    query_int(&q, keep);
    return query_run(&q, err, "forget old requests");
}
