/* Checkpoints out as one file, and in again. */
#include <errno.h>
#include <string.h>

#include "core/parcel.h"
#include "front/http/fields.h"
#include "front/native/native.h"

int native_checkpoint_export(struct request *req, struct err *err)
{
    static const char *const known[] = { "image", NULL };
    struct image_export *exp = NULL;
    bool image = true;
    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = request_param_bool(req, "image", &image, err);
    if (r >= 0)
        r = parcel_pack(req->core, req->owner, req->args[0], image, &exp, err);
    return r < 0 ? r : native_reply_export(req, exp);
}

static int sink_begin(struct request *req, struct err *err)
{
    static const char *const known[] = { "name", NULL };
    struct parcel_import *imp = NULL;
    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = parcel_import_begin(req->core, req->owner, &imp, err);
    if (r >= 0)
        req->sink = imp;
    return r;
}

static int sink_write(struct request *req, const char *p, size_t n, struct err *err)
{
    return parcel_import_write(req->sink, p, n, err);
}

static void sink_end(struct request *req)
{
    parcel_import_abort(req->sink);
    req->sink = NULL;
}

const struct route_sink native_checkpoint_sink = { sink_begin, sink_write, sink_end, NULL };

int native_checkpoint_import(struct request *req, struct err *err)
{
    _cleanup_(checkpoint_done) struct checkpoint c = { 0 };
    struct parcel_import *imp = req->sink;
    req->sink = NULL; /* finishing frees it, whatever comes of it */
    int r = parcel_import_finish(imp, uri_param(&req->uri, "name"), &c, err);
    return r < 0 ? r : native_reply_checkpoint(req, 201, &c);
}
