/* The ways into a sandbox from outside: tokens for its previews, and names of a client's own. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "core/alias.h"
#include "core/certs.h"
#include "core/pass.h"
#include "core/port.h"
#include "front/http/fields.h"
#include "front/native/native.h"
#include "front/native/page.h"

/* ---- where a port is reached ---- */

void native_preview_url(const struct request *req, const char *sandbox, unsigned port,
                        struct buf *out)
{
    if (req->preview_domain)
        (void)buf_printf(out, "%s://%u-%s.%s", req->preview_tls ? "https" : "http", port, sandbox,
                         req->preview_domain);
}

static void put_url(struct jout *j, const struct request *req, const char *sandbox, unsigned port,
                    const char *token)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(1024);
    if (port)
        native_preview_url(req, sandbox, port, &b);
    if (b.len && token)
        (void)buf_printf(&b, "/?warren_token=%s", token);
    jout_str(j, "url", b.len ? b.data : NULL);
}

/* ---- tokens ---- */

struct token_ask {
    uint32_t port;
    int64_t life_ms;
    char *data;
};

/* As it will stand in a header: one line, in ASCII. */
static int as_header_json(const json_t *v, const struct field *f, void *at, struct err *err)
{
    char **member = at;
    _cleanup_(buf_done) struct buf b = BUF_INIT(PASS_DATA_MAX);
    _cleanup_free_ char *text = NULL;
    if (!json_is_object(v))
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be an object", f->name);
    text = json_dumps(v, JSON_COMPACT | JSON_ENSURE_ASCII);
    if (!text)
        return err_set(err, ENOMEM, "out of memory");
    int r = 0;
    for (const char *p = text; *p && r >= 0; p++)
        r = *p == 0x7f ? buf_puts(&b, "\\u007f") : buf_append(&b, p, 1);
    if (r == -EMSGSIZE)
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' has more than %d bytes as JSON in ASCII",
                        f->name, PASS_DATA_MAX);
    free(*member);
    *member = r < 0 ? NULL : buf_steal(&b);
    return *member ? 0 : err_set(err, ENOMEM, "out of memory");
}

static const struct field token_fields[] = {
    FIELD(struct token_ask, port, "port", as_u32, .min = 1, .max = PORT_MAX, .null_ok = true),
    FIELD(struct token_ask, life_ms, "expires_s", as_seconds, .min = 1, .max = PASS_LIFE_MAX_S),
    FIELD(struct token_ask, data, "data", as_header_json, .null_ok = true),
};

static void put_pass(struct jout *j, const struct request *req, const struct pass *p,
                     const char *text)
{
    jout_open(j, NULL, '{');
    jout_str(j, "id", p->id);
    jout_str(j, "sandbox", p->sandbox);
    if (p->port)
        jout_uint(j, "port", p->port);
    else
        jout_null(j, "port");
    if (p->data)
        jout_raw(j, "data", p->data);
    else
        jout_null(j, "data");
    jout_time(j, "created_at", p->created_ms);
    jout_time(j, "expires_at", p->expires_ms);
    if (text) {
        jout_str(j, "token", text);
        put_url(j, req, p->sandbox, p->port, text);
    }
    jout_close(j, '}');
}

int native_token_create(struct request *req, struct err *err)
{
    struct token_ask ask = { .life_ms = PASS_LIFE_S * 1000ll };
    _cleanup_(pass_done) struct pass pass = { .data = NULL };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    char text[PASS_TEXT_SIZE];
    int r = request_fields(req, token_fields, ARRAY_LEN(token_fields), &ask, NULL, err);
    if (r >= 0 && ask.life_ms < 1000)
        r = err_fail(err, FAIL_INVALID_FIELD, "'expires_s' must be at least 1");
    if (r >= 0)
        r = pass_create(req->core, req->owner, req->args[0], ask.port, ask.life_ms, ask.data, &pass,
                        text, err);
    free(ask.data);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    put_pass(&j, req, &pass, text);
    reply_header(req, "Cache-Control", "%s", "no-store");
    return reply_json(req, 201, &j);
}

int native_token_list(struct request *req, struct err *err)
{
    _cleanup_(page_done) struct page page = { 0 };
    struct pass *list = NULL;
    size_t n = 0;
    int r = page_read(req, NULL, &page, err);
    if (r >= 0)
        r = pass_list(req->core, req->owner, req->args[0], &list, &n, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    page_open(&page, "tokens");
    for (size_t i = 0; i < n; i++)
        if (page_takes_made(&page, list[i].created_ms, list[i].id))
            put_pass(&page.json, req, &list[i], NULL);
    pass_list_free(list, n);
    return page_reply(req, &page);
}

int native_token_delete(struct request *req, struct err *err)
{
    int r = pass_revoke(req->core, req->owner, req->args[0], req->args[1], err);
    return r < 0 ? native_sandbox_error(req, r, err) : reply_empty(req);
}

/* ---- names ---- */

struct name_ask {
    char *name, *sandbox;
    uint32_t port;
};

static const struct field name_fields[] = {
    FIELD(struct name_ask, name, "name", as_text, .max = HOST_SIZE - 1),
    FIELD(struct name_ask, sandbox, "sandbox", as_text, .max = NAME_MAX_LEN),
    FIELD(struct name_ask, port, "port", as_u32, .min = 1, .max = PORT_MAX),
};

static void put_certificate(struct jout *j, struct core *core, const char *name)
{
    struct certs_state s;
    certs_state(core, name, &s);
    if (!s.found && !s.failure[0]) {
        jout_null(j, "certificate");
        return;
    }
    jout_open(j, "certificate", '{');
    jout_time(j, "expires_at", s.found ? s.until_ms : 0);
    jout_str(j, "error", s.failure[0] ? s.failure : NULL);
    jout_time(j, "next_try_at", s.next_try_ms);
    jout_close(j, '}');
}

static void put_name(struct jout *j, struct core *core, const struct alias *a)
{
    jout_open(j, NULL, '{');
    jout_str(j, "name", a->name);
    jout_str(j, "sandbox", a->sandbox);
    jout_uint(j, "port", a->port);
    jout_time(j, "created_at", a->created_ms);
    put_certificate(j, core, a->name);
    jout_close(j, '}');
}

static int reply_name(struct request *req, unsigned status, const struct alias *a)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    put_name(&j, req->core, a);
    return reply_json(req, status, &j);
}

/* The domain as it stands in a Host, without its port. */
static void domain_of(const struct request *req, char out[HOST_SIZE])
{
    const char *text = req->preview_domain ? req->preview_domain : "localhost";
    (void)snprintf(out, HOST_SIZE, "%.*s", (int)strcspn(text, ":"), text);
}

int native_name_put(struct request *req, struct err *err)
{
    struct name_ask ask = { 0 };
    struct alias alias;
    char domain[HOST_SIZE];
    domain_of(req, domain);
    int r = request_fields(req, name_fields, ARRAY_LEN(name_fields), &ask, NULL, err);
    if (r >= 0 && (!ask.name || !ask.sandbox || !ask.port))
        r = err_fail(err, FAIL_MISSING_FIELD, "'name', 'sandbox' and 'port' are needed");
    if (r >= 0)
        r = alias_put(req->core, req->owner, domain, ask.name, ask.sandbox, ask.port, &alias, err);
    free(ask.name);
    free(ask.sandbox);
    if (r < 0)
        return r;
    certs_wake(req->core);
    return reply_name(req, 201, &alias);
}

int native_name_list(struct request *req, struct err *err)
{
    _cleanup_(page_done) struct page page = { 0 };
    _cleanup_free_ struct alias *list = NULL;
    size_t n = 0;
    int r = page_read(req, NULL, &page, err);
    if (r >= 0)
        r = alias_list(req->core, req->owner, &list, &n, err);
    if (r < 0)
        return r;
    page_open(&page, "names");
    for (size_t i = 0; i < n; i++)
        if (page_takes(&page, list[i].name))
            put_name(&page.json, req->core, &list[i]);
    return page_reply(req, &page);
}

int native_name_get(struct request *req, struct err *err)
{
    struct alias alias;
    int r = alias_get(req->core, req->owner, req->args[0], &alias, err);
    return r < 0 ? r : reply_name(req, 200, &alias);
}

int native_name_delete(struct request *req, struct err *err)
{
    int r = alias_remove(req->core, req->owner, req->args[0], err);
    return r < 0 ? r : reply_empty(req);
}
