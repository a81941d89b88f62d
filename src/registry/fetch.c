#include <errno.h>
#include <string.h>

#include "registry/private.h"

#define ERROR_PAGE_MAX (64 * 1024)

/* A small document, with another try where the line broke; silence is waited for once only. */
static int get_small(struct registry *reg, struct exchange *x, const char *what, struct err *err)
{
    struct retry retry = { 0 };
    for (;;) {
        int r = registry_ask(reg, x, err);
        if (r >= 0)
            r = registry_check(reg, x, what, err);
        if (r >= 0 || x->silent || !retry_again(reg, &retry, x))
            return r;
    }
}

static int check_digest(const struct buf *b, const char *expected, const char *what,
                        struct err *err)
{
    char digest[SHA_SIZE];
    int r = sha_of(b->data ? b->data : "", b->len, digest);
    if (r < 0)
        return err_set(err, -r, "cannot hash a document");
    if (strcmp(digest, expected) == 0)
        return 0;
    return err_fail_as(err, EBADMSG, FAIL_INVALID_IMAGE,
                       "the %s that the registry sent is %s where %s was asked for", what, digest,
                       expected);
}

int registry_manifest_get(struct registry *reg, const char *what, struct buf *out,
                          char ret_type[MEDIA_TYPE_MAX], char ret_digest[SHA_SIZE], struct err *err)
{
    _cleanup_(exchange_done) struct exchange x = { .method = "GET",
                                                   .accept = MANIFEST_ACCEPT,
                                                   .answer = BUF_INIT(MANIFEST_MAX) };
    char url[EXCHANGE_URL_MAX], words[REFERENCE_TAG_MAX + 32];
    (void)snprintf(words, sizeof(words), "manifest '%s'", what);
    int r = registry_url(reg, "manifests", what, url, err);
    x.url = url;
    if (r >= 0)
        r = get_small(reg, &x, words, err);
    if (r >= 0 && sha_valid(what, strlen(what)))
        r = check_digest(&x.answer, what, "manifest", err);
    if (r >= 0 && (sha_of(x.answer.data ? x.answer.data : "", x.answer.len, ret_digest) < 0 ||
                   buf_append(out, x.answer.data ? x.answer.data : "", x.answer.len) < 0))
        r = err_set(err, ENOMEM, "cannot keep a manifest");
    if (r < 0)
        return r;
    memcpy(ret_type, x.type, sizeof(x.type));
    return 0;
}

int registry_blob_read(struct registry *reg, const struct descriptor *d, struct buf *out,
                       struct err *err)
{
    /* One byte more than it may have: a longer one is then seen as a wrong size, not cut. */
    _cleanup_(exchange_done) struct exchange x = { .method = "GET",
                                                   .answer = BUF_INIT((size_t)d->size + 1) };
    char url[EXCHANGE_URL_MAX];
    int r = registry_url(reg, "blobs", d->digest, url, err);
    x.url = url;
    if (r >= 0)
        r = get_small(reg, &x, "configuration", err);
    if (r >= 0 && x.answer.len != d->size)
        r = err_fail_as(err, EBADMSG, FAIL_INVALID_IMAGE,
                        "the configuration has %zu bytes where %llu were announced", x.answer.len,
                        (unsigned long long)d->size);
    if (r >= 0)
        r = check_digest(&x.answer, d->digest, "configuration", err);
    if (r >= 0 && buf_append(out, x.answer.data ? x.answer.data : "", x.answer.len) < 0)
        r = err_set(err, ENOMEM, "cannot keep a configuration");
    return r;
}

/* ---- large ones ---- */

struct fetch {
    const struct descriptor *d;
    const struct registry_sink *sink;
    void *arg;
    uint64_t have;
    bool begun; /* this answer's place was checked */
};

static int on_bytes(void *arg, const struct exchange *x, const void *p, size_t n, struct err *err)
{
    struct fetch *f = arg;
    if (!f->begun) {
        f->begun = true;
        if (x->status == 206 && (!x->ranged || x->range_start != f->have))
            return err_fail_as(err, EPROTO, FAIL_REGISTRY_FAILED,
                               "the registry sent another part of layer %.19s than was asked for",
                               f->d->digest);
        if (x->status == 200 && f->have > 0) { /* it does not know ranges */
            f->have = 0;
            int r = f->sink->restart(f->arg, err);
            if (r < 0)
                return r;
        }
    }
    if (n > f->d->size - f->have)
        return err_fail_as(err, EBADMSG, FAIL_INVALID_IMAGE,
                           "layer %.19s is longer than the %llu bytes that its manifest says",
                           f->d->digest, (unsigned long long)f->d->size);
    int r = f->sink->write(f->arg, p, n, err);
    if (r >= 0)
        f->have += n;
    return r;
}

static int fetch_once(struct registry *reg, const char *url, struct fetch *f, struct exchange *x,
                      struct err *err)
{
    f->begun = false;
    x->url = url;
    x->range_from = f->have;
    int r = registry_ask(reg, x, err);
    if (r < 0)
        return r;
    if (x->status == 416 && f->have > 0) { /* what we have cannot be the beginning of it */
        f->have = 0;
        r = f->sink->restart(f->arg, err);
        x->transient = true;
        return r < 0 ? r
                     : err_fail(err, FAIL_REGISTRY_FAILED,
                                "the registry does not continue layer %.19s", f->d->digest);
    }
    r = registry_check(reg, x, "layer", err);
    if (r >= 0 && f->have < f->d->size) {
        x->transient = true;
        r = err_fail(err, FAIL_REGISTRY_FAILED,
                     "layer %.19s ended after %llu of %llu bytes, again and again", f->d->digest,
                     (unsigned long long)f->have, (unsigned long long)f->d->size);
    }
    return r;
}

int registry_blob_fetch(struct registry *reg, const struct descriptor *d, uint64_t from,
                        const struct registry_sink *sink, void *arg, struct err *err)
{
    struct fetch f = { .d = d, .sink = sink, .arg = arg, .have = from };
    struct retry retry = { 0 };
    char url[EXCHANGE_URL_MAX];
    int r = registry_url(reg, "blobs", d->digest, url, err);
    if (r < 0 || from == d->size)
        return r;
    _cleanup_(exchange_done) struct exchange x = {
        .method = "GET", .sink = on_bytes, .arg = &f, .answer = BUF_INIT(ERROR_PAGE_MAX)
    };
    for (;;) {
        uint64_t before = f.have;
        r = fetch_once(reg, url, &f, &x, err);
        if (r >= 0)
            return 0;
        if (f.have > before)
            retry.tries = 0; /* it moves, if slowly */
        if (!retry_again(reg, &retry, &x))
            return http_cancelled(reg->http) ? err_fail(err, FAIL_CANCELLED, "cancelled") : r;
    }
}
