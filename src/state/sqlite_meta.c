#include <errno.h>

#include "state/sqlite.h"

int store_meta_get(struct store *store, const char *key, char **ret_value, struct err *err)
{
    struct query q;
    _cleanup_free_ char *value = NULL;
    int found = 0;
    query_begin(&q, &store->reader, STMT_META_GET);
    query_text(&q, key);
    if (query_step(&q) > 0) {
        const char *text = query_col(&q, 0);
        value = strdup(text ? text : "");
        found = 1;
    }
    int r = query_done(&q, err, "read a fact");
    if (r < 0)
        return r;
    if (found && !value)
        return err_set(err, ENOMEM, "cannot allocate a value");
    *ret_value = take_ptr(value);
    return found;
}

int store_meta_set(struct store *store, const char *key, const char *value, struct err *err)
{
    struct query q;
    query_begin(&q, &store->writer, STMT_META_SET);
    query_text(&q, key);
    query_text(&q, value);
    return query_run(&q, err, "record a fact");
}
