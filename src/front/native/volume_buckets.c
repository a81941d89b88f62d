/* The member `bucket` of a volume. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/bucket.h"
#include "front/http/fields.h"
#include "front/native/native.h"

#define REGION_DEFAULT "us-east-1"

struct ask {
    char *endpoint, *bucket, *prefix, *region, *access_key, *secret;
    bool path_style, read_only;
};

static const struct field bucket_fields[] = {
    FIELD(struct ask, endpoint, "endpoint", as_text, .max = BUCKET_ENDPOINT_SIZE - 1),
    FIELD(struct ask, bucket, "bucket", as_text, .max = BUCKET_NAME_SIZE - 1),
    FIELD(struct ask, prefix, "prefix", as_text, .max = BUCKET_PREFIX_SIZE - 1),
    FIELD(struct ask, region, "region", as_text, .max = BUCKET_REGION_SIZE - 1),
    FIELD(struct ask, access_key, "access_key", as_text, .max = BUCKET_KEY_SIZE - 1),
    FIELD(struct ask, secret, "secret", as_text, .max = NAME_MAX_LEN),
    FIELD(struct ask, path_style, "path_style", as_bool),
    FIELD(struct ask, read_only, "read_only", as_bool),
};

static void ask_done(struct ask *ask)
{
    free(ask->endpoint);
    free(ask->bucket);
    free(ask->prefix);
    free(ask->region);
    free(ask->access_key);
    free(ask->secret);
}

static void copy(char *to, size_t size, const char *from, const char *fallback)
{
    (void)snprintf(to, size, "%s", from ? from : fallback);
}

int native_as_bucket(const json_t *v, const struct field *f, void *at, struct err *err)
{
    _cleanup_(ask_done) struct ask ask = { 0 };
    struct bucket *b = at;
    uint32_t seen;
    if (!json_is_object(v))
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be an object", f->name);
    int r = fields_decode(v, bucket_fields, ARRAY_LEN(bucket_fields), &ask, &seen, err);
    if (r < 0)
        return r;
    if (!ask.endpoint || !ask.bucket || !ask.access_key || !ask.secret)
        return err_fail(err, FAIL_MISSING_FIELD,
                        "'%s' lacks one of 'endpoint', 'bucket', 'access_key' and 'secret'",
                        f->name);
    copy(b->endpoint, sizeof(b->endpoint), ask.endpoint, "");
    copy(b->bucket, sizeof(b->bucket), ask.bucket, "");
    copy(b->prefix, sizeof(b->prefix), ask.prefix, "");
    copy(b->region, sizeof(b->region), ask.region, REGION_DEFAULT);
    copy(b->access_key, sizeof(b->access_key), ask.access_key, "");
    copy(b->secret, sizeof(b->secret), ask.secret, "");
    b->path_style = ask.path_style;
    b->read_only = ask.read_only;
    if (!*b->endpoint)
        return err_fail(err, FAIL_INVALID_FIELD, "'%s.endpoint' is empty", f->name);
    return 0;
}

void native_put_bucket(struct jout *j, const char *key, const struct bucket *b)
{
    jout_open(j, key, '{');
    jout_str(j, "endpoint", b->endpoint);
    jout_str(j, "bucket", b->bucket);
    jout_str(j, "prefix", b->prefix);
    jout_str(j, "region", b->region);
    jout_str(j, "access_key", b->access_key);
    jout_str(j, "secret", b->secret);
    jout_bool(j, "path_style", b->path_style);
    jout_bool(j, "read_only", b->read_only);
    jout_close(j, '}');
}
