/* Answers: whatever a sandbox printed, the text we write is JSON that others can read. */
#include <jansson.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct buf b = BUF_INIT(16u << 20);
    struct jout j = JOUT_INIT(&b);
    jout_open(&j, NULL, '{');
    jout_strn(&j, "text", (const char *)p, n);
    jout_b64(&j, "bytes", p, n);
    jout_close(&j, '}');
    if (jout_done(&j) < 0)
        abort();
    json_t *v = json_loadb(b.data, b.len, JSON_ALLOW_NUL, NULL);
    if (!v)
        abort();
    json_decref(v);
    buf_done(&b);
    return 0;
}
