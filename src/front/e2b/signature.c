#include "front/e2b/signature.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "core/token.h"
#include "front/e2b/budget.h"
#include "front/e2b/e2b.h"
#include "front/e2b/envd.h"

#define SIGNED_MAX (16 * 1024) /* a path and a user, as long as a request line may be */
#define SIGNATURE_LEN 46       /* "v1_" and 32 bytes in base64 */
#define HASHES_PER_S 20000     /* for links that name no sandbox: some 60 ms of one cpu */
#define HASH_BYTES 512         /* takes about as long to hash as the fixed part of a hash */

static const char *param(const struct request *req, const char *name)
{
    const char *v = uri_param(&req->uri, name);
    return v ? v : "";
}

/* "v1_" and the digest in base64 without its padding. */
static int sign(struct request *req, const char *op, const char *id, struct buf *out)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(SIGNED_MAX);
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char token[TOKEN_SIZE];
    const char *expires = uri_param(&req->uri, "signature_expiration");

    token_for(req->core, ENVD_TOKEN, id, token);
    int r = buf_printf(&text, "%s:%s:%s:%s", param(req, "path"), op, param(req, "username"), token);
    if (r >= 0 && expires)
        r = buf_printf(&text, ":%s", expires);
    if (r < 0)
        return r;
    (void)SHA256((const unsigned char *)text.data, text.len, digest);
    r = buf_puts(out, "v1_");
    if (r >= 0)
        r = base64_encode(digest, sizeof(digest), out);
    while (r >= 0 && out->data[out->len - 1] == '=')
        out->data[--out->len] = '\0';
    return r;
}

static bool matches(struct request *req, const char *op, const char *id)
{
    _cleanup_(buf_done) struct buf right = BUF_INIT(128);
    const char *given = param(req, "signature");
    return sign(req, op, id, &right) >= 0 && strlen(given) == right.len &&
           CRYPTO_memcmp(given, right.data, right.len) == 0;
}

int signature_check(struct request *req, const char *id, const char *op, struct err *err)
{
    const char *token = request_header(req, "X-Access-Token");
    const char *expires = uri_param(&req->uri, "signature_expiration");
    if (token)
        return token_is(req->core, ENVD_TOKEN, id, token)
                   ? 0
                   : err_fail(err, FAIL_UNAUTHORIZED, "invalid access token");
    if (!uri_param(&req->uri, "signature"))
        return err_fail(err, FAIL_UNAUTHORIZED, "missing signature query parameter");
    if (!matches(req, op, id))
        return err_fail(err, FAIL_UNAUTHORIZED, "invalid signature");
    if (expires && strtoll(expires, NULL, 10) < clock_now_ms() / 1000)
        return err_fail(err, FAIL_UNAUTHORIZED, "signature is already expired");
    return 0;
}

int signature_find(struct request *req, const char *op, char ret_id[ID_SIZE], struct err *err)
{
    static struct budget budget = BUDGET_INIT(HASHES_PER_S);
    _cleanup_free_ char(*ids)[ID_SIZE] = NULL;
    size_t n = 0, len = strlen(param(req, "path")) + strlen(param(req, "username"));
    if (strlen(param(req, "signature")) == SIGNATURE_LEN && sandbox_ids(req->core, &ids, &n) >= 0 &&
        !budget_spend(&budget, n * (1 + len / HASH_BYTES), clock_mono_us()))
        return err_fail_as(err, EBUSY, FAIL_TOO_MANY_REQUESTS,
                           "too many links that name no sandbox are being looked up; try again, or "
                           "send the header E2b-Sandbox-Id");
    for (size_t i = 0; i < n; i++) {
        if (!matches(req, op, ids[i]))
            continue;
        memcpy(ret_id, ids[i], ID_SIZE);
        return 0;
    }
    return err_fail(err, FAIL_UNAUTHORIZED,
                    "the link names no sandbox, and is signed for none that is here");
}
