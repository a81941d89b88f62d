#include "s3/listing.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "s3/xml.h"

struct page {
    struct s3_object object;
    bool has_key, has_size, inside, listing;
};

static int number(const char *text, uint64_t *ret_v)
{
    uint64_t v = 0;
    size_t n = strlen(text);
    if (n == 0 || n > 18)
        return -EBADMSG;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -EBADMSG;
        v = v * 10 + (uint64_t)(text[i] - '0');
    }
    *ret_v = v;
    return 0;
}

/* A member of one <Contents>. */
static int member(struct page *pg, const char *name, const char *text)
{
    struct s3_object *o = &pg->object;
    if (strcmp(name, "Key") == 0) {
        size_t n = strlen(text);
        if (n == 0 || n > S3_KEY_MAX)
            return -EBADMSG;
        memcpy(o->key, text, n + 1);
        pg->has_key = true;
    } else if (strcmp(name, "Size") == 0) {
        pg->has_size = true;
        return number(text, &o->size);
    } else if (strcmp(name, "LastModified") == 0) {
        return clock_parse(text, &o->modified_ms) < 0 ? -EBADMSG : 0;
    }
    return 0;
}

static int top_member(const char *name, const char *text, struct listing_end *end)
{
    if (strcmp(name, "IsTruncated") == 0) {
        end->more = strcmp(text, "true") == 0;
    } else if (strcmp(name, "NextContinuationToken") == 0) {
        size_t n = strlen(text);
        if (n > S3_TOKEN_MAX)
            return -EBADMSG;
        memcpy(end->token, text, n + 1);
    }
    return 0;
}

static int refuse(struct err *err)
{
    return err_fail_as(err, EBADMSG, FAIL_ARCHIVE_FAILED,
                       "the object storage's list cannot be read: it is not what was asked for");
}

static int on_close(struct xml *x, struct page *pg, s3_object_fn fn, void *ctx,
                    struct listing_end *end, struct err *err)
{
    const char *name = x->names[x->depth];
    if (x->depth == 2 && pg->inside)
        return member(pg, name, x->text) < 0 ? refuse(err) : 0;
    if (x->depth != 1)
        return 0;
    if (!pg->inside)
        return top_member(name, x->text, end) < 0 ? refuse(err) : 0;
    pg->inside = false;
    return pg->has_key && pg->has_size ? fn(ctx, &pg->object, err) : refuse(err);
}

static void on_open(const struct xml *x, struct page *pg)
{
    if (x->depth == 1)
        pg->listing = strcmp(x->names[0], "ListBucketResult") == 0;
    if (x->depth == 2 && strcmp(x->names[1], "Contents") == 0)
        *pg = (struct page){ .inside = true, .listing = pg->listing };
}

int listing_read(const char *p, size_t n, s3_object_fn fn, void *ctx, struct listing_end *ret_end,
                 struct err *err)
{
    struct listing_end end = { .more = false };
    struct page pg = { .listing = false };
    struct xml x;
    int event, r = 0;
    xml_init(&x, p, n);
    while (r >= 0 && (event = xml_next(&x)) > XML_END) {
        if (event == XML_OPEN)
            on_open(&x, &pg);
        else
            r = on_close(&x, &pg, fn, ctx, &end, err);
        if (r >= 0 && !pg.listing)
            r = refuse(err);
    }
    if (r < 0)
        return r;
    if (event < 0 || (end.more && !end.token[0]))
        return refuse(err);
    *ret_end = end;
    return 0;
}

void listing_code(const char *p, size_t n, char ret_code[S3_CODE_MAX])
{
    struct xml x;
    int event;
    ret_code[0] = '\0';
    xml_init(&x, p, n);
    while ((event = xml_next(&x)) > XML_END) {
        if (event != XML_CLOSE || x.depth != 1 || strcmp(x.names[1], "Code") != 0)
            continue;
        size_t len = strlen(x.text);
        for (size_t i = 0; i < len; i++) /* a word, to be shown */
            if (!((x.text[i] | 32) >= 'a' && (x.text[i] | 32) <= 'z'))
                return;
        if (len < S3_CODE_MAX)
            memcpy(ret_code, x.text, len + 1);
        return;
    }
}
