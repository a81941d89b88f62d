/* Secrets: values that go in and are never shown. */
#include <errno.h>
#include <string.h>

#include "core/secret.h"
#include "front/e2b/e2b.h"
#include "front/e2b/secrets.h"
#include "front/http/fields.h"

#define LIMIT_MAX 100

static void put_secret(struct jout *j, const struct secret *s)
{
    jout_open(j, NULL, '{');
    jout_str(j, "secretID", s->id);
    jout_str(j, "name", s->name);
    jout_uint(j, "currentVersion", s->version);
    put_pairs(j, "metadata", &s->metadata);
    jout_time(j, "createdAt", s->created_ms);
    jout_time(j, "updatedAt", s->updated_ms);
    jout_close(j, '}');
}

static int reply_secret(struct request *req, unsigned status, const struct secret *s)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(64 * 1024);
    struct jout j = JOUT_INIT(&b);
    put_secret(&j, s);
    return reply_json(req, status, &j);
}

/* 1: `metadata` was given. */
static int read_metadata(const json_t *object, struct pairs *out, struct err *err)
{
    const json_t *v = json_object_get(object, "metadata");
    const char *name;
    json_t *value;
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_object(v))
        return err_fail(err, FAIL_INVALID_FIELD, "metadata must be an object");
    json_object_foreach((json_t *)(uintptr_t)v, name, value) {
        if (!json_is_string(value))
            return err_fail(err, FAIL_INVALID_FIELD, "metadata must be text to text");
        if (pairs_add(out, name, json_string_value(value)) < 0)
            return err_set(err, ENOMEM, "cannot allocate a secret");
    }
    return 1;
}

int e2b_secret_create(struct request *req, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    _cleanup_(pairs_done) struct pairs metadata = { 0 };
    _cleanup_(secret_done) struct secret s = { 0 };
    int r = request_json(req, &object, err);
    const char *name = json_string_value(json_object_get(object, "name"));
    const char *value = json_string_value(json_object_get(object, "value"));
    if (r >= 0 && (!name || !value))
        r = err_fail(err, FAIL_MISSING_FIELD, "name and value are required");
    if (r >= 0)
        r = read_metadata(object, &metadata, err);
    if (r >= 0)
        r = secret_create(req->core, req->owner, name, value, &metadata, &s, err);
    return r < 0 ? r : reply_secret(req, 201, &s);
}

int e2b_secret_update(struct request *req, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    _cleanup_(pairs_done) struct pairs metadata = { 0 };
    _cleanup_(secret_done) struct secret s = { 0 };
    int r = request_json(req, &object, err);
    const char *value = json_string_value(json_object_get(object, "value"));
    if (r >= 0 && !value)
        r = err_fail(err, FAIL_MISSING_FIELD, "value is required");
    if (r >= 0)
        r = read_metadata(object, &metadata, err);
    if (r >= 0)
        r = secret_update(req->core, req->owner, req->args[0], value, r > 0 ? &metadata : NULL, &s,
                          err);
    return r < 0 ? r : reply_secret(req, 200, &s);
}

int e2b_secret_get(struct request *req, struct err *err)
{
    _cleanup_(secret_done) struct secret s = { 0 };
    int r = secret_get(req->core, req->owner, req->args[0], &s, err);
    return r < 0 ? r : reply_secret(req, 200, &s);
}

int e2b_secret_delete(struct request *req, struct err *err)
{
    int r = secret_remove(req->core, req->owner, req->args[0], err);
    return r < 0 ? r : reply_empty(req);
}

/* The token of a page is the id of the last that was given. */
int e2b_secret_list(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    const char *text = uri_param(&req->uri, "limit"), *after = uri_param(&req->uri, "nextToken");
    struct jout j = JOUT_INIT(&b);
    struct secret *list = NULL;
    size_t n = 0, at = 0, given = 0;
    char *end = NULL;
    unsigned long limit = text ? strtoul(text, &end, 10) : LIMIT_MAX;
    if (text && (!*text || *end || limit < 1 || limit > LIMIT_MAX))
        return err_fail(err, FAIL_INVALID_QUERY, "limit must be from 1 to %d", LIMIT_MAX);
    int r = secret_list(req->core, req->owner, &list, &n, err);
    if (r < 0)
        return r;
    while (after && at < n && strcmp(list[at].id, after) != 0)
        at++;
    if (after && at++ == n) {
        secret_list_free(list, n);
        return err_fail(err, FAIL_INVALID_QUERY, "nextToken is not one of this list");
    }
    jout_open(&j, NULL, '[');
    for (; at < n && given < limit; at++, given++)
        put_secret(&j, &list[at]);
    jout_close(&j, ']');
    if (at < n && at > 0)
        reply_header(req, "X-Next-Token", "%s", list[at - 1].id);
    secret_list_free(list, n);
    return reply_json(req, 200, &j);
}
