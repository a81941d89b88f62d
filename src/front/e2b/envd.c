#include "front/e2b/envd.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "core/file.h"
#include "core/token.h"
#include "front/e2b/e2b.h"

#define KEEPALIVE_DEFAULT_S 90
#define KEEPALIVE_MAX_S 3600
#define TIMEOUT_MAX_MS 9999999999 /* ten digits, as the protocol has it */

int envd_keepalive_ms(struct request *req)
{
    const char *text = request_header(req, "Keepalive-Ping-Interval");
    long s = text ? strtol(text, NULL, 10) : 0;
    return (int)(s > 0 && s <= KEEPALIVE_MAX_S ? s : KEEPALIVE_DEFAULT_S) * 1000;
}

int envd_timeout_ms(struct request *req, int64_t *ret_ms, struct err *err)
{
    const char *text = request_header(req, "Connect-Timeout-Ms");
    char *end = NULL;
    *ret_ms = 0;
    if (!text)
        return 0;
    errno = 0;
    long long ms = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : -1;
    if (errno || ms < 0 || ms > TIMEOUT_MAX_MS || *end)
        return err_fail(err, FAIL_INVALID_REQUEST, "Connect-Timeout-Ms is not such a number");
    *ret_ms = ms;
    return 0;
}

int envd_gone(struct request *req, const char *id)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(1024);
    struct jout j = JOUT_INIT(&b);
    jout_open(&j, NULL, '{');
    jout_str(&j, "sandboxId", id);
    jout_str(&j, "message", "The sandbox was not found");
    jout_int(&j, "code", 502);
    jout_close(&j, '}');
    return reply_json(req, 502, &j);
}

/* "Authorization: Basic base64(user:)": who commands run as. */
static int read_user(struct request *req, struct envd *envd)
{
    const char *header = request_header(req, "Authorization");
    if (!header || strncasecmp(header, "Basic ", 6) != 0)
        return 0;
    _cleanup_(buf_done) struct buf b = BUF_INIT(256);
    header += 6;
    if (base64_decode(header, strlen(header), &b) < 0 || b.len == 0)
        return -EINVAL;
    size_t n = strcspn(b.data, ":");
    if (n >= sizeof(envd->user) || n != strnlen(b.data, n))
        return -EINVAL;
    memcpy(envd->user, b.data, n);
    envd->user[n] = '\0';
    return 0;
}

int envd_enter(struct request *req, struct envd *ret_envd, struct err *err)
{
    const char *id = req->subject;
    *ret_envd = (struct envd){ 0 };
    int r = sandbox_enter_awake(req->core, NULL, id, &ret_envd->s, err);
    if (r < 0 && e2b_wake(req, id) >= 0)
        r = sandbox_enter_awake(req->core, NULL, id, &ret_envd->s, err);
    if (r < 0)
        return err_set(err, ENOTCONN, "The sandbox was not found");
    ret_envd->core = req->core;
    if (read_user(req, ret_envd) == 0)
        return 0;
    envd_leave(ret_envd);
    return err_fail(err, FAIL_UNAUTHORIZED, "the user of this request is not understood");
}

void envd_leave(struct envd *envd)
{
    file_call_free(take_ptr(envd->birth));
    if (envd->core)
        sandbox_leave(envd->core, envd->s.id);
    envd->core = NULL;
    sandbox_done(&envd->s);
}

int envd_fail(const struct envd *envd, const struct connect_call *call, const struct err *err)
{
    if (envd->core && (err->code == ENOTCONN || err->code == ECONNRESET))
        return envd_gone(call->req, envd->s.id);
    char text[ERR_MSG_MAX];
    if (err->failure == FAIL_USER_NOT_FOUND) { /* programs look for these words */
        (void)snprintf(text, sizeof(text), "invalid username: '%.64s'",
                       *envd->user ? envd->user : envd->s.spec.user);
        return connect_fail(call, failure_rpc(err->failure), text);
    }
    return connect_fail(call, failure_rpc(err->failure), err->msg);
}

int envd_begin(struct request *req, const ProtobufCMessageDescriptor *d, bool stream,
               struct envd *ret_envd, struct connect_call *ret_call, struct err *err)
{
    int r = envd_enter(req, ret_envd, err);
    if (r != 0)
        return r;
    r = connect_begin(req, d, stream, ret_call, err);
    if (r >= 0)
        return 0;
    r = envd_fail(ret_envd, ret_call, err);
    return r < 0 ? r : 1;
}
