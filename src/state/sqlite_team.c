#include "state/sqlite.h"

int store_team_put(struct store *store, const struct store_team *row, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_TEAM_PUT);
    query_text(&q, row->name);
    query_int(&q, row->created_ms);
    query_int(&q, row->sandboxes);
    query_int(&q, row->cpu_millis);
    query_int(&q, row->memory_mb);
    query_int(&q, row->disk_mb);
    return query_run(&q, err, "record a team");
}

int store_team_remove(struct store *store, const char *name, struct err *err)
{
    /* The keys first: a crash in between leaves a team without keys, not keys without a team. */
    static const enum stmt steps[] = { STMT_TEAM_KEYS_REMOVE,    STMT_TEAM_RECORDS_REMOVE,
                                       STMT_TEAM_EVENTS_REMOVE,  STMT_TEAM_USAGE_REMOVE,
                                       STMT_TEAM_SECRETS_REMOVE, STMT_TEAM_REMOVE };
    int r = 0;
    for (size_t i = 0; r >= 0 && i < ARRAY_LEN(steps); i++) {
        struct query q;
        query_begin(&q, &store->writer, steps[i]);
        query_text(&q, name);
        r = query_run(&q, err, "forget a team");
    }
    return r;
}

int store_team_each(struct store *store, store_team_fn *fn, void *ctx, struct err *err)
{
    struct query q;
    int stop = 0;
    query_begin(&q, &store->reader, STMT_TEAM_EACH);
    while (stop == 0 && query_step(&q) > 0) {
        struct store_team row = {
            .name = query_col(&q, 0),
            .created_ms = query_col_int(&q, 1),
            .sandboxes = query_col_int(&q, 2),
            .cpu_millis = query_col_int(&q, 3),
            .memory_mb = query_col_int(&q, 4),
            .disk_mb = query_col_int(&q, 5),
        };
        stop = fn(ctx, &row);
    }
    int r = query_done(&q, err, "read the teams");
    return r < 0 ? r : stop;
}
