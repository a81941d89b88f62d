#include <errno.h>

#include "state/sqlite.h"

#define STEPS_MAX 20000 /* that are remembered; those used longest ago go */

/* The first column of a query's only row, and the second if ret_number is not NULL. */
static int one_row(struct query *q, char **ret_text, int64_t *ret_number, struct err *err)
{
    _cleanup_free_ char *text = NULL;
    int64_t number = 0;
    int found = 0;
    if (query_step(q) > 0) {
        const char *col = query_col(q, 0);
        text = strdup(col ? col : "");
        number = ret_number ? query_col_int(q, 1) : 0;
        found = 1;
    }
    int r = query_done(q, err, "read a build step");
    if (r < 0)
        return r;
    if (found && !text)
        return err_set(err, ENOMEM, "cannot allocate a build step");
    *ret_text = take_ptr(text);
    if (ret_number)
        *ret_number = number;
    return found;
}

int store_build_get(struct store *store, const char *key, int64_t now_ms, char **ret_chain,
                    int64_t *ret_made_ms, struct err *err)
{
    struct query q;
    query_begin(&q, &store->reader, STMT_BUILD_GET);
    query_text(&q, key);
    int r = one_row(&q, ret_chain, ret_made_ms, err);
    if (r <= 0)
        return r;
    query_begin(&q, &store->writer, STMT_BUILD_USED);
    query_int(&q, now_ms);
    query_text(&q, key);
    (void)query_run(&q, NULL, "record the use of a build step");
    return r;
}

int store_build_put(struct store *store, const char *key, const char *owner, const char *chain,
                    int64_t now_ms, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_BUILD_PUT);
    query_text(&q, key);
    query_text(&q, owner);
    query_text(&q, chain);
    query_int(&q, now_ms);
    query_int(&q, now_ms);
    int r = query_run(&q, err, "record a build step");
    if (r < 0)
        return r;
    query_begin(&q, &store->writer, STMT_BUILD_PRUNE);
    query_int(&q, STEPS_MAX);
    return query_run(&q, err, "forget old build steps");
}

int store_build_forget(struct store *store, const char *owner, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_BUILD_FORGET);
    query_text(&q, owner);
    return query_run(&q, err, "forget a team's build steps");
}

int store_build_other(struct store *store, const char *chain, const char *owner, char **ret_other,
                      struct err *err)
{
    struct query q;
    query_begin(&q, &store->reader, STMT_BUILD_OTHER);
    query_text(&q, chain);
    query_text(&q, owner);
    return one_row(&q, ret_other, NULL, err);
}
