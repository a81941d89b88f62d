/* Request targets: whatever stands on the request line. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "front/http/uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct uri uri;
    struct err err = ERR_INIT;
    if (uri_parse((const char *)p, n, &uri, &err) < 0)
        return 0;
    for (size_t i = 0; i < uri.nsegments; i++)
        if (!text_valid(uri.segments[i], strlen(uri.segments[i])))
            abort();
    for (size_t i = 0; i < uri.nparams; i++)
        if (!text_valid(uri.params[i].name, strlen(uri.params[i].name)) ||
            !text_valid(uri.params[i].value, strlen(uri.params[i].value)))
            abort();
    uri_done(&uri);
    return 0;
}
