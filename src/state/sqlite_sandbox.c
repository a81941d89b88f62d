#include "state/sqlite.h"

int store_sandbox_add(struct store *store, const struct store_sandbox *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_SANDBOX_ADD);
    query_text(&q, row->id);
    query_text(&q, row->owner);
    query_text(&q, row->name);
    query_text(&q, row->state);
    query_text(&q, row->cause);
    query_text(&q, row->tree);
    query_int(&q, row->created_ms);
    query_int(&q, row->started_ms);
    query_int(&q, row->stopped_ms);
    query_int(&q, row->expires_ms);
    query_int(&q, row->last_active_ms);
    query_int(&q, row->ended_ms);
    query_text(&q, row->spec);
    return query_run(&q, err, "record a sandbox");
}

int store_sandbox_save(struct store *store, const struct store_sandbox *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_SANDBOX_SAVE);
    query_text(&q, row->name);
    query_text(&q, row->state);
    query_text(&q, row->cause);
    query_text(&q, row->tree);
    query_int(&q, row->started_ms);
    query_int(&q, row->stopped_ms);
    query_int(&q, row->expires_ms);
    query_int(&q, row->last_active_ms);
    query_int(&q, row->ended_ms);
    query_text(&q, row->spec);
    query_text(&q, row->id);
    return query_run(&q, err, "save a sandbox");
}

int store_sandbox_mark(struct store *store, const struct store_sandbox *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_SANDBOX_MARK);
    query_text(&q, row->state);
    query_text(&q, row->cause);
    query_int(&q, row->started_ms);
    query_int(&q, row->stopped_ms);
    query_int(&q, row->expires_ms);
    query_int(&q, row->last_active_ms);
    query_int(&q, row->ended_ms);
    query_text(&q, row->id);
    return query_run(&q, err, "record a sandbox's state");
}

int store_sandbox_active(struct store *store, const char *id, int64_t last_active_ms,
                         struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_SANDBOX_ACTIVE);
    query_int(&q, last_active_ms);
    query_text(&q, id);
    return query_run(&q, err, "record a sandbox's use");
}

static int walk(struct query *q, store_sandbox_fn *fn, void *ctx, struct err *err)
{
    int stop = 0;
    while (stop == 0 && query_step(q) > 0) {
        struct store_sandbox row = {
            .id = query_col(q, 0),
            .owner = query_col(q, 1),
            .name = query_col(q, 2),
            .state = query_col(q, 3),
            .cause = query_col(q, 4),
            .tree = query_col(q, 5),
            .created_ms = query_col_int(q, 6),
            .started_ms = query_col_int(q, 7),
            .stopped_ms = query_col_int(q, 8),
            .expires_ms = query_col_int(q, 9),
            .last_active_ms = query_col_int(q, 10),
            .ended_ms = query_col_int(q, 11),
            .spec = query_col(q, 12),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(q, err, "read the sandboxes");
    return r < 0 ? r : stop;
}

int store_sandbox_live(struct store *store, store_sandbox_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    query_begin(&q, &store->reader, STMT_SANDBOX_LIVE);
    return walk(&q, fn, ctx, err);
}

struct once {
    store_sandbox_fn *fn;
    void *ctx;
    bool called;
};

static int call_once(void *ctx, const struct store_sandbox *row)
{
    struct once *o = ctx;
    o->called = true;
    return o->fn(o->ctx, row);
}

int store_sandbox_gone(struct store *store, const char *owner, const char *who,
                       store_sandbox_fn *fn, void *ctx, struct err *err)
{
    static const enum stmt by[] = { STMT_SANDBOX_GONE_ID, STMT_SANDBOX_GONE_NAME };
    struct once o = { .fn = fn, .ctx = ctx };
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(by) && !o.called && r == 0; i++) {
        struct query q;
        query_begin(&q, &store->reader, by[i]);
        query_text(&q, who);
        query_text(&q, owner);
        r = walk(&q, call_once, &o, err);
    }
    return r;
}

int store_sandbox_gone_list(struct store *store, const char *owner, bool ascending,
                            int64_t after_ms, const char *after_id, store_sandbox_fn *fn, void *ctx,
                            struct err *err)
{
    struct query q;
    query_begin(&q, &store->reader, ascending ? STMT_SANDBOX_GONE_ASC : STMT_SANDBOX_GONE_DESC);
    query_text(&q, owner);
    query_int(&q, after_ms);
    query_int(&q, after_ms);
    query_text(&q, after_id);
    return walk(&q, fn, ctx, err);
}

int store_sandbox_prune(struct store *store, int64_t ended_before_ms, unsigned keep,
                        struct err *err)
{
    struct query q;
    query_begin(&q, &store->reader, STMT_SANDBOX_GONE_NTH);
    query_int(&q, keep);
    if (query_step(&q) > 0) {
        int64_t nth = query_col_int(&q, 0);
        if (nth >= ended_before_ms)
            ended_before_ms = nth + 1;
    }
    int r = query_done(&q, err, "count the records");
    /* In slices, so that no request waits for a long one. */
    int removed = 1;
    while (r >= 0 && removed > 0) {
        query_begin(&q, &store->writer, STMT_SANDBOX_PRUNE);
        query_int(&q, ended_before_ms);
        (void)query_step(&q);
        removed = q.rc == SQLITE_OK ? sqlite3_changes(store->writer.db) : 0;
        r = query_done(&q, err, "forget old records");
    }
    return r;
}
