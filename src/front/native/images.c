#include <errno.h>

#include "core/image.h"
#include "front/native/native.h"
#include "front/native/paging.h"

static void put_image(struct jout *j, const struct image *i)
{
    jout_open(j, NULL, '{');
    jout_str(j, "name", i->name);
    jout_str(j, "digest", i->digest);
    jout_uint(j, "size_bytes", i->size_bytes);
    jout_time(j, "created_at", i->created_ms);
    jout_close(j, '}');
}

int native_image_list(struct request *req, struct err *err)
{
    static const char *const known[] = { "limit", "cursor", NULL };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    _cleanup_free_ struct image *images = NULL;
    struct jout j = JOUT_INIT(&b);
    struct paging page;
    size_t n = 0;

    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = paging_read(req, &page, err);
    if (r >= 0)
        r = image_list(req->core, &images, &n, err);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    jout_open(&j, "images", '[');
    for (size_t i = 0; i < n; i++)
        if (paging_takes(&page, images[i].name)) /* they come in order of their names */
            put_image(&j, &images[i]);
    jout_close(&j, ']');
    paging_put(&page, &j);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

static int sink_begin(struct request *req, struct err *err)
{
    struct image_import *imp = NULL;
    int r = image_import_begin(req->core, req->args[0], &imp, err);
    if (r >= 0)
        req->sink = imp;
    return r;
}

static int sink_write(struct request *req, const char *p, size_t n, struct err *err)
{
    return image_import_write(req->sink, p, n, err);
}

static void sink_end(struct request *req)
{
    if (req->sink)
        image_import_abort(req->sink);
    req->sink = NULL;
}

const struct route_sink native_image_sink = { sink_begin, sink_write, sink_end };

int native_image_put(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    struct image image;
    struct image_import *imp = req->sink;

    req->sink = NULL; /* finishing frees it, whatever comes of it */
    int r = image_import_finish(imp, &image, err);
    if (r < 0)
        return r;
    put_image(&j, &image);
    return reply_json(req, 201, &j);
}

int native_image_delete(struct request *req, struct err *err)
{
    int r = image_remove(req->core, req->args[0], err);
    return r < 0 ? r : reply_empty(req);
}
