#include "cli/ndjson.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"

void ndjson_init(struct ndjson *nd, ndjson_fn fn, void *arg)
{
    *nd = (struct ndjson){ .part = BUF_INIT(NDJSON_LINE_MAX), .fn = fn, .arg = arg };
}

void ndjson_done(struct ndjson *nd)
{
    buf_done(&nd->part);
}

static int take_line(struct ndjson *nd, const char *p, size_t n)
{
    while (n > 0 && (p[n - 1] == '\r' || p[n - 1] == ' '))
        n--;
    if (n == 0)
        return 0;
    if (n > NDJSON_LINE_MAX)
        return -EMSGSIZE;
    json_t *object = json_loadb(p, n, JSON_ALLOW_NUL, NULL);
    int r = json_is_object(object) ? nd->fn(nd->arg, object) : -EPROTO;
    json_decref(object);
    return r < 0 ? r : 0;
}

int ndjson_feed(struct ndjson *nd, const char *p, size_t n)
{
    while (n > 0) {
        const char *nl = memchr(p, '\n', n);
        size_t len = nl ? (size_t)(nl - p) : n;
        int r;
        if (nl && nd->part.len == 0) { /* whole in this piece: no copy */
            r = take_line(nd, p, len);
        } else {
            r = buf_append(&nd->part, p, len);
            if (r == 0 && nl) {
                r = take_line(nd, nd->part.data, nd->part.len);
                buf_clear(&nd->part);
            }
        }
        if (r < 0)
            return r;
        if (nl)
            len++;
        p += len;
        n -= len;
    }
    return 0;
}

int ndjson_end(struct ndjson *nd)
{
    int r = nd->part.len ? take_line(nd, nd->part.data, nd->part.len) : 0;
    buf_clear(&nd->part);
    return r;
}

int event_bytes(const json_t *event, struct buf *scratch, const char **ret_p, size_t *ret_n)
{
    const json_t *data = json_object_get(event, "data");
    if (!json_is_string(data))
        data = json_object_get(event, "text"); /* a sandbox's log */
    if (json_is_string(data)) {
        *ret_p = json_string_value(data);
        *ret_n = json_string_length(data);
        return 0;
    }
    data = json_object_get(event, "data_b64");
    if (!data)
        data = json_object_get(event, "text_b64");
    if (!json_is_string(data))
        return -EPROTO;
    buf_clear(scratch);
    int r = base64_decode(json_string_value(data), json_string_length(data), scratch);
    if (r < 0)
        return r;
    *ret_p = scratch->data;
    *ret_n = scratch->len;
    return 0;
}
