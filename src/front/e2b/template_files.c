/* What a COPY will take, sent ahead: a link to send it to, and what comes there. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "core/token.h"
#include "core/upload.h"
#include "front/e2b/templates.h"
#include "net/preview.h"

#define PURPOSE "e2b.upload"
#define LINK_S (60 * 60)

/* Who may send what until when: the link carries it all, and the token that vouches for it. */
static int token_text(char *out, size_t size, const char *owner, const char *hash,
                      const char *until)
{
    int n = snprintf(out, size, "%s/%s/%s", owner, hash, until);
    return n > 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

/* At api.<domain> every path has the mount put before it: a link to there must not name it again. */
static const char *mount_at(const struct request *req, const char *host)
{
    char domain[PREVIEW_DOMAIN_MAX + 1];
    const char *text = req->preview_domain ? req->preview_domain : "";
    (void)snprintf(domain, sizeof(domain), "%.*s", (int)preview_name_len(text, strlen(text)), text);
    return preview_is_api(host, strlen(host), domain) ? "" : "/e2b";
}

static int reply_link(struct request *req, const char *name, const char *hash, bool present)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(64 * 1024), url = BUF_INIT(16 * 1024);
    struct jout j = JOUT_INIT(&b);
    char until[24], subject[192], token[TOKEN_SIZE];
    const char *host = request_header(req, "Host"),
               *proto = request_header(req, "X-Forwarded-Proto");
    (void)snprintf(until, sizeof(until), "%lld", (long long)(clock_now_ms() / 1000 + LINK_S));
    int r = token_text(subject, sizeof(subject), req->owner, hash, until);
    if (r < 0)
        return r;
    token_for(req->core, PURPOSE, subject, token);
    if (!host)
        host = "localhost";
    r = buf_printf(&url, "%s://%s%s/templates/%s/files/%s?team=%s&until=%s&token=%s",
                   proto && strcasecmp(proto, "https") == 0 ? "https" : "http", host,
                   mount_at(req, host), name, hash, req->owner, until, token);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    jout_bool(&j, "present", present);
    jout_str(&j, "url", url.data);
    jout_close(&j, '}');
    return reply_json(req, 201, &j);
}

int e2b_template_files(struct request *req, struct err *err)
{
    struct e2b_name name;
    int r = e2b_name_own(req, req->args[0], &name, err);
    if (r < 0)
        return r;
    if (!upload_hash_valid(req->args[1]))
        return err_fail(err, FAIL_INVALID_FIELD, "the hash of files must be hex digits");
    return reply_link(req, name.name, req->args[1],
                      upload_exists(req->core, req->owner, req->args[1]));
}

/* ---- the other end of the link ---- */

static int check_link(struct request *req, struct err *err)
{
    char subject[192];
    const char *team = uri_param(&req->uri, "team"), *until = uri_param(&req->uri, "until");
    const char *token = uri_param(&req->uri, "token");
    if (!team || !until || !token || !name_valid(team) || strlen(until) > 19 ||
        strspn(until, "0123456789") != strlen(until) || !upload_hash_valid(req->args[1]) ||
        token_text(subject, sizeof(subject), team, req->args[1], until) < 0 ||
        !token_is(req->core, PURPOSE, subject, token))
        return err_fail(err, FAIL_UNAUTHORIZED, "this is not a link for uploads");
    if (strtoll(until, NULL, 10) < clock_now_ms() / 1000)
        return err_fail(err, FAIL_UNAUTHORIZED, "the link for uploads has expired");
    (void)snprintf(req->owner, sizeof(req->owner), "%s", team);
    req->authorized = true;
    return request_known(req, team, err);
}

int e2b_upload_auth(struct request *req, struct err *err)
{
    int r = check_link(req, err);
    return r < 0 ? request_stranger(req, r, err) : r;
}

static int sink_begin(struct request *req, struct err *err)
{
    struct upload *up = NULL;
    int r = upload_begin(req->core, req->owner, req->args[1], &up, err);
    req->sink = up;
    return r;
}

static int sink_write(struct request *req, const char *p, size_t n, struct err *err)
{
    return upload_write(req->sink, p, n, err);
}

static void sink_end(struct request *req)
{
    upload_abort(req->sink);
    req->sink = NULL;
}

const struct route_sink e2b_upload_sink = { sink_begin, sink_write, sink_end, NULL };

int e2b_template_upload(struct request *req, struct err *err)
{
    struct upload *up = take_ptr(req->sink);
    int r = upload_finish(up, err);
    return r < 0 ? r : reply_status(req, 200);
}
