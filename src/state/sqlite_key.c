#include "state/sqlite.h"

int store_key_add(struct store *store, const struct store_key *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_KEY_ADD);
    query_text(&q, row->id);
    query_text(&q, row->owner);
    query_text(&q, row->name);
    query_text(&q, row->hash);
    query_int(&q, row->created_ms);
    query_int(&q, row->last_used_ms);
    query_text(&q, row->role);
    return query_run(&q, err, "record a key");
}

int store_key_used(struct store *store, const char *id, int64_t last_used_ms, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_KEY_USED);
    query_int(&q, last_used_ms);
    query_text(&q, id);
    return query_run(&q, err, "record a key's use");
}

int store_key_role(struct store *store, const char *id, const char *role, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_KEY_ROLE);
    query_text(&q, role);
    query_text(&q, id);
    return query_run(&q, err, "record a key's role");
}

int store_key_remove(struct store *store, const char *id, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_KEY_REMOVE);
    query_text(&q, id);
    return query_run(&q, err, "revoke a key");
}

int store_key_each(struct store *store, store_key_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_KEY_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_key row = {
            .id = query_col(&q, 0),
            .owner = query_col(&q, 1),
            .name = query_col(&q, 2),
            .hash = query_col(&q, 3),
            .created_ms = query_col_int(&q, 4),
            .last_used_ms = query_col_int(&q, 5),
            .role = query_col(&q, 6),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the keys");
    return r < 0 ? r : stop;
}
