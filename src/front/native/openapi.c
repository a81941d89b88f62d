#include <errno.h>

#include "front/native/native.h"

/* src/front/native/openapi.json, put into the program when it is built. */
extern const unsigned char native_openapi_text[];
extern const size_t native_openapi_size;

int native_openapi(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    int r = buf_append(&b, native_openapi_text, native_openapi_size);
    return r < 0 ? err_set(err, -r, "cannot copy the document")
                 : reply_text(req, 200, "application/json", &b);
}
