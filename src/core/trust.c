/* A sandbox with transparent bindings meets certificates of its own authority (authority.h): its
 * programs must trust it. They look in a bundle, in a directory of hashed names, or where a variable
 * says (process.c); each of them is served. All of it is done by warren-init inside: links lead
 * nowhere else, and what is no plain file is refused. What cannot be written is the sandbox's loss
 * alone: its programs then refuse the certificates. */
#include "core/trust.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/authority.h"
#include "core/file.h"
#include "core/private.h"

#define LOG_MODULE "network"
#define BUNDLE_MAX (4 * 1024 * 1024) /* the usual ones have a quarter of one */
#define WITHIN_MS 10000              /* for all of it */
#define MARK "# Warren, sandbox "
#define MARK_END "# Warren, end\n"

/* The first is there in the end, and what variables name. */
static const char *const bundles[] = {
    TRUST_BUNDLE,
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
};

struct work {
    struct core *core;
    struct sandbox s;
    int64_t until_ms;
};

static int left(const struct work *w)
{
    int64_t ms = w->until_ms - clock_mono_ms();
    return ms > 0 ? (int)ms : 0;
}

static int read_file(const struct work *w, const char *path, struct buf *out, struct err *err)
{
    struct file_ask ask = { .op = WIRE_FILE_READ, .paths = &path, .n_paths = 1, .user = "root" };
    _cleanup_(file_call_freep) struct file_call *call = NULL;
    struct file_event ev;
    int r = file_begin(w->core, &w->s, &ask, &call, err);
    for (bool done = false; r >= 0 && !done;) {
        r = file_next(call, left(w), -1, &ev, err);
        if (r < 0)
            return r;
        done = ev.type == FILE_DONE;
        if (ev.type == FILE_DATA && buf_append(out, ev.data, ev.len) < 0)
            r = err_set(err, EFBIG, "'%s' is too large for a bundle of certificates", path);
        file_event_done(&ev);
    }
    return r;
}

static int write_file(const struct work *w, const char *path, const char *p, size_t n,
                      struct err *err)
{
    struct file_ask ask = {
        .op = WIRE_FILE_WRITE, .paths = &path, .n_paths = 1, .user = "root", .mode = 0644
    };
    _cleanup_(file_call_freep) struct file_call *call = NULL;
    struct file_event ev;
    int r = file_begin(w->core, &w->s, &ask, &call, err);
    if (r >= 0)
        r = file_put_data(call, p, n);
    if (r >= 0)
        r = file_put_end(call);
    if (r == -EPIPE)
        r = 0; /* the answer says why */
    for (bool done = false; r >= 0 && !done;) {
        r = file_next(call, left(w), -1, &ev, err);
        if (r < 0)
            break;
        done = ev.type == FILE_DONE;
        file_event_done(&ev);
    }
    return r;
}

/* ---- the bundle ---- */

/* Cuts out what was for another id: these files may be a copy of another sandbox's. */
static void cut_old(struct buf *b)
{
    char *from = b->data ? strstr(b->data, MARK) : NULL;
    char *to = from ? strstr(from, MARK_END) : NULL;
    if (!to)
        return;
    to += strlen(MARK_END);
    memmove(from, to, b->len - (size_t)(to - b->data));
    b->len -= (size_t)(to - from);
    b->data[b->len] = '\0';
}

static bool has_it(const struct buf *b, const char *block)
{
    size_t line = strcspn(block, "\n") + 1;
    return b->len && memmem(b->data, b->len, block, line);
}

static int add_block(struct buf *b, const char *block)
{
    int r = 0;
    cut_old(b);
    if (b->len && b->data[b->len - 1] != '\n')
        r = buf_append(b, "\n", 1);
    return r < 0 ? r : buf_puts(b, block);
}

/* 1: it was there and now has the block. */
static int extend(const struct work *w, const char *path, const char *block, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(BUNDLE_MAX);
    struct err why = ERR_INIT;
    int r = read_file(w, path, &b, &why);
    if (r < 0)
        return why.failure == FAIL_FILE_NOT_FOUND
                   ? 0
                   : err_set(err, why.code ? why.code : EIO, "%s", why.msg);
    if (has_it(&b, block))
        return 1;
    r = add_block(&b, block);
    if (r >= 0)
        r = write_file(w, path, b.data, b.len, err);
    return r < 0 ? r : 1;
}

/* The first bundle is not there: it becomes a copy of the first that is, or holds ours alone. */
static int found(const struct work *w, const char *block, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(BUNDLE_MAX);
    for (size_t i = 1; i < ARRAY_LEN(bundles) && b.len == 0; i++)
        if (read_file(w, bundles[i], &b, NULL) < 0)
            buf_clear(&b);
    int r = has_it(&b, block) ? 0 : add_block(&b, block);
    return r < 0 ? r : write_file(w, bundles[0], b.data, b.len, err);
}

static int fill_bundles(const struct work *w, const char *block, struct err *err)
{
    int there = 0;
    for (size_t i = ARRAY_LEN(bundles); i-- > 0;) {
        there = extend(w, bundles[i], block, err);
        if (there < 0 && i == 0)
            return there;
    }
    return there > 0 ? 0 : found(w, block, err);
}

static int install(const struct work *w, const struct authority *a, struct err *err)
{
    _cleanup_(buf_done) struct buf block = BUF_INIT(BUNDLE_MAX);
    char hashed[64];
    (void)snprintf(hashed, sizeof(hashed), "/etc/ssl/certs/%s.0", a->hash);
    int r = buf_printf(&block, MARK "%s\n%s" MARK_END, w->s.id, a->cert);
    if (r < 0)
        return err_set(err, -r, "cannot allocate a certificate");
    _cleanup_(buf_done) struct buf now = BUF_INIT(BUNDLE_MAX);
    if (read_file(w, TRUST_BUNDLE, &now, NULL) >= 0 && has_it(&now, block.data))
        return 0; /* it comes last: the others are there too */
    r = write_file(w, TRUST_CERT, a->cert, strlen(a->cert), err);
    if (r >= 0)
        r = write_file(w, hashed, a->cert, strlen(a->cert), err);
    return r < 0 ? r : fill_bundles(w, block.data, err);
}

void trust_install(struct core *core, const char *id)
{
    _cleanup_(authority_done) struct authority a = { 0 };
    struct work w = { .core = core, .until_ms = clock_mono_ms() + WITHIN_MS };
    struct err err = ERR_INIT;
    (void)snprintf(w.s.id, sizeof(w.s.id), "%s", id);
    int r = authority_make(core->secrets.key, id, &a, &err);
    if (r >= 0)
        r = install(&w, &a, &err);
    if (r < 0)
        log_warn("its programs do not trust its authority sandbox=%s err=\"%s\"", id, err.msg);
}

/* ---- variables ---- */

/* Of programs that look nowhere else. */
static const struct trust_variable variables[] = {
    { "SSL_CERT_FILE", TRUST_BUNDLE },
    { "CURL_CA_BUNDLE", TRUST_BUNDLE },
    { "REQUESTS_CA_BUNDLE", TRUST_BUNDLE },
    { "GIT_SSL_CAINFO", TRUST_BUNDLE },
    { "PIP_CERT", TRUST_BUNDLE },
    { "AWS_CA_BUNDLE", TRUST_BUNDLE },
    { "CARGO_HTTP_CAINFO", TRUST_BUNDLE },
    { "NODE_EXTRA_CA_CERTS", TRUST_CERT },
    { "DENO_CERT", TRUST_CERT },
};

const struct trust_variable *trust_variables(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(variables);
    return variables;
}
