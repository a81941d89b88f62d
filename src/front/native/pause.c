/* Putting a sandbox's processes away, and going on with them. */
#include <errno.h>
#include <string.h>

#include "front/native/native.h"

int native_sandbox_pause(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    _cleanup_free_ char *versions = NULL;
    int r = native_read_match(req, &versions, err);
    if (r >= 0)
        r = sandbox_pause_if(req->core, req->owner, req->args[0], versions, &s, err);
    return r < 0 ? native_sandbox_error(req, r, err) : native_reply_sandbox(req, 200, &s);
}

static int read_memory(struct request *req, bool *ret_memory, struct err *err)
{
    static const char *const known[] = { "memory", NULL };
    const char *text = uri_param(&req->uri, "memory");
    int r = request_params_known(req, known, err);
    if (r < 0)
        return r;
    if (text && strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return err_fail(err, FAIL_INVALID_QUERY, "'memory' must be true or false");
    *ret_memory = !text || strcmp(text, "true") == 0;
    return 0;
}

int native_sandbox_resume(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    bool memory = true;
    int r = read_memory(req, &memory, err);
    if (r >= 0)
        r = sandbox_resume(req->core, req->owner, req->args[0], memory, &s, err);
    return r < 0 ? native_sandbox_error(req, r, err) : native_reply_sandbox(req, 200, &s);
}
