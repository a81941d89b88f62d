#include <errno.h>

#include "state/sqlite.h"

#define STEPS_MAX 20000 /* that are remembered; those used longest ago go */

static int find(struct store *store, const char *key, char **ret_chain, struct err *err)
{
    struct query q;
    _cleanup_free_ char *chain = NULL;
    int found = 0;
    query_begin(&q, &store->reader, STMT_BUILD_GET);
    query_text(&q, key);
    if (query_step(&q) > 0) {
        const char *text = query_col(&q, 0);
        chain = strdup(text ? text : "");
        found = 1;
    }
    int r = query_done(&q, err, "read a build step");
    if (r < 0)
        return r;
    if (found && !chain)
        return err_set(err, ENOMEM, "cannot allocate a chain");
    *ret_chain = take_ptr(chain);
    return found;
}

int store_build_get(struct store *store, const char *key, int64_t now_ms, char **ret_chain,
                    struct err *err)
{
    int r = find(store, key, ret_chain, err);
    if (r <= 0)
        return r;
    struct query q;
    query_begin(&q, &store->writer, STMT_BUILD_USED);
    query_int(&q, now_ms);
    query_text(&q, key);
    (void)query_run(&q, NULL, "record the use of a build step");
    return r;
}

int store_build_put(struct store *store, const char *key, const char *chain, int64_t now_ms,
                    struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_BUILD_PUT);
    query_text(&q, key);
    query_text(&q, chain);
    query_int(&q, now_ms);
    int r = query_run(&q, err, "record a build step");
    if (r < 0)
        return r;
    query_begin(&q, &store->writer, STMT_BUILD_PRUNE);
    query_int(&q, STEPS_MAX);
    return query_run(&q, err, "forget old build steps");
}
