/* What strangers may know of certificates: the local authority's, and answers to ACME's challenges. */
#include <errno.h>
#include <string.h>

#include "core/certs.h"
#include "front/native/native.h"

int native_ca(struct request *req, struct err *err)
{
    const char *pem = certs_authority(req->core);
    if (!pem)
        return err_fail(err, FAIL_NOT_FOUND,
                        "this daemon has no authority of its own: it was started without "
                        "--tls-listen, or with a certificate's files");
    _cleanup_(buf_done) struct buf text = BUF_INIT(strlen(pem));
    int r = buf_puts(&text, pem);
    return r < 0 ? r : reply_text(req, 200, "application/x-pem-file", &text);
}

int native_challenge(struct request *req, struct err *err)
{
    char proof[CERTS_PROOF_SIZE];
    if (certs_challenge(req->core, req->args[0], proof) < 0)
        return err_fail(err, FAIL_NOT_FOUND, "no challenge of that token is under way");
    _cleanup_(buf_done) struct buf text = BUF_INIT(sizeof(proof));
    int r = buf_puts(&text, proof);
    return r < 0 ? r : reply_text(req, 200, "application/octet-stream", &text);
}
