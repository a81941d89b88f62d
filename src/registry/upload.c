#include <errno.h>
#include <string.h>

#include "registry/private.h"

#define ANSWER_MAX (64 * 1024)

int registry_blob_has(struct registry *reg, const char *digest, struct err *err)
{
    _cleanup_(exchange_done) struct exchange x = { .method = "HEAD",
                                                   .answer = BUF_INIT(ANSWER_MAX) };
    struct retry retry = { 0 };
    char url[EXCHANGE_URL_MAX];
    int r = registry_url(reg, "blobs", digest, url, err);
    x.url = url;
    while (r >= 0) {
        r = registry_ask(reg, &x, err);
        if (r >= 0 && x.status == 404)
            return 0;
        if (r >= 0)
            r = registry_check(reg, &x, "blob", err);
        if (r >= 0)
            return 1;
        if (!x.silent && retry_again(reg, &retry, &x))
            r = 0;
    }
    return r;
}

/* 1: it was mounted; 0: ret_url is where to send it. */
static int begin(struct registry *reg, const struct descriptor *d, const char *mount_from,
                 struct exchange *x, char ret_url[EXCHANGE_URL_MAX], struct err *err)
{
    char url[EXCHANGE_URL_MAX];
    int r = registry_url(reg, "blobs/uploads", "", url, err);
    if (r >= 0 && mount_from)
        r = url_add_query(url, "mount", d->digest, err);
    if (r >= 0 && mount_from)
        r = url_add_query(url, "from", mount_from, err);
    if (r < 0)
        return r;
    *x = (struct exchange){ .method = "POST", .url = url, .answer = x->answer };
    r = registry_ask(reg, x, err);
    if (r >= 0)
        r = registry_check(reg, x, "upload", err);
    if (r < 0)
        return r;
    if (x->status == 201 && mount_from)
        return 1;
    if (x->status != 202)
        return err_fail_as(err, EPROTO, FAIL_REGISTRY_FAILED,
                           "the registry answered a new upload with %ld", x->status);
    r = url_resolve(url, x->location, ret_url, err);
    return r < 0 ? r : url_add_query(ret_url, "digest", d->digest, err);
}

static int put_once(struct registry *reg, const struct descriptor *d, int fd,
                    const char *mount_from, registry_sent_fn sent, void *arg, struct exchange *x,
                    struct err *err)
{
    char url[EXCHANGE_URL_MAX];
    int r = begin(reg, d, mount_from, x, url, err);
    if (r != 0)
        return r;
    *x = (struct exchange){ .method = "PUT",
                            .url = url,
                            .content_type = "application/octet-stream",
                            .body_fd = fd,
                            .body_size = d->size,
                            .sent = sent,
                            .arg = arg,
                            .answer = x->answer };
    r = registry_ask(reg, x, err);
    if (r >= 0)
        r = registry_check(reg, x, "upload", err);
    return r < 0 ? r : 0;
}

int registry_blob_put(struct registry *reg, const struct descriptor *d, int fd,
                      const char *mount_from, registry_sent_fn sent, void *arg, struct err *err)
{
    _cleanup_(exchange_done) struct exchange x = { .answer = BUF_INIT(ANSWER_MAX) };
    struct retry retry = { 0 };
    for (;;) {
        int r = put_once(reg, d, fd, mount_from, sent, arg, &x, err);
        if (r >= 0 || !retry_again(reg, &retry, &x))
            return r;
    }
}

int registry_manifest_put(struct registry *reg, const char *what, const char *type, const char *p,
                          size_t n, struct err *err)
{
    char url[EXCHANGE_URL_MAX], digest[SHA_SIZE];
    struct retry retry = { 0 };
    _cleanup_(exchange_done) struct exchange x = { .answer = BUF_INIT(ANSWER_MAX) };
    int r = registry_url(reg, "manifests", what, url, err);
    if (r >= 0 && sha_of(p, n, digest) < 0)
        r = err_set(err, EIO, "cannot hash a manifest");
    if (r < 0)
        return r;
    do {
        x = (struct exchange){ .method = "PUT",
                               .url = url,
                               .content_type = type,
                               .body = p,
                               .body_size = n,
                               .answer = x.answer };
        r = registry_ask(reg, &x, err);
        if (r >= 0)
            r = registry_check(reg, &x, "manifest", err);
    } while (r < 0 && retry_again(reg, &retry, &x));
    if (r >= 0 && x.digest[0] && strcmp(x.digest, digest) != 0)
        r = err_fail_as(err, EPROTO, FAIL_REGISTRY_FAILED,
                        "the registry stored the manifest as %s where it is %s", x.digest, digest);
    return r;
}
