#include <errno.h>
#include <string.h>

#include "core/secret.h"
#include "front/http/fields.h"
#include "front/native/native.h"
#include "front/native/page.h"

struct ask {
    char *name, *value;
    struct pairs metadata;
};

static const struct field create_fields[] = {
    FIELD(struct ask, name, "name", as_text, .max = NAME_MAX_LEN),
    FIELD(struct ask, value, "value", as_text, .max = SECRET_VALUE_MAX),
    FIELD(struct ask, metadata, "metadata", as_pairs),
};
enum { SEEN_VALUE = 1, SEEN_METADATA = 2 };
static const struct field update_fields[] = {
    FIELD(struct ask, value, "value", as_text, .max = SECRET_VALUE_MAX),
    FIELD(struct ask, metadata, "metadata", as_pairs),
};

static void ask_done(struct ask *ask)
{
    if (ask->value)
        explicit_bzero(ask->value, strlen(ask->value));
    free(ask->value);
    free(ask->name);
    pairs_done(&ask->metadata);
}

static void put_secret(struct jout *j, const struct secret *s)
{
    jout_open(j, NULL, '{');
    jout_str(j, "id", s->id);
    jout_str(j, "name", s->name);
    jout_uint(j, "version", s->version);
    put_pairs(j, "metadata", &s->metadata);
    jout_time(j, "created_at", s->created_ms);
    jout_time(j, "updated_at", s->updated_ms);
    jout_close(j, '}');
}

static int reply_secret(struct request *req, unsigned status, const struct secret *s)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    put_secret(&j, s);
    return reply_json(req, status, &j);
}

int native_secret_create(struct request *req, struct err *err)
{
    _cleanup_(ask_done) struct ask ask = { 0 };
    _cleanup_(secret_done) struct secret s = { 0 };
    int r = request_fields(req, create_fields, ARRAY_LEN(create_fields), &ask, NULL, err);
    if (r < 0)
        return r;
    if (!ask.name || !ask.value)
        return err_fail(err, FAIL_MISSING_FIELD, "'name' and 'value' are needed");
    r = secret_create(req->core, req->owner, ask.name, ask.value, &ask.metadata, &s, err);
    return r < 0 ? r : reply_secret(req, 201, &s);
}

int native_secret_list(struct request *req, struct err *err)
{
    _cleanup_(page_done) struct page page = { 0 };
    struct secret *list = NULL;
    size_t n = 0;
    int r = page_read(req, NULL, &page, err);
    if (r >= 0)
        r = secret_list(req->core, req->owner, &list, &n, err);
    if (r < 0)
        return r;
    page_open(&page, "secrets");
    for (size_t i = 0; i < n; i++)
        if (page_takes_made(&page, list[i].created_ms, list[i].id))
            put_secret(&page.json, &list[i]);
    secret_list_free(list, n);
    return page_reply(req, &page);
}

int native_secret_get(struct request *req, struct err *err)
{
    _cleanup_(secret_done) struct secret s = { 0 };
    int r = secret_get(req->core, req->owner, req->args[0], &s, err);
    return r < 0 ? r : reply_secret(req, 200, &s);
}

int native_secret_update(struct request *req, struct err *err)
{
    _cleanup_(ask_done) struct ask ask = { 0 };
    _cleanup_(secret_done) struct secret s = { 0 };
    uint32_t seen = 0;
    int r = request_fields(req, update_fields, ARRAY_LEN(update_fields), &ask, &seen, err);
    if (r < 0)
        return r;
    r = secret_update(req->core, req->owner, req->args[0], seen & SEEN_VALUE ? ask.value : NULL,
                      seen & SEEN_METADATA ? &ask.metadata : NULL, &s, err);
    return r < 0 ? r : reply_secret(req, 200, &s);
}

int native_secret_delete(struct request *req, struct err *err)
{
    int r = secret_remove(req->core, req->owner, req->args[0], err);
    return r < 0 ? r : reply_empty(req);
}
