/* Frames and fields: any header, any payload; what is read must lie within it. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct wire_header h;
    if (n >= WIRE_HEADER_SIZE && wire_header_get(p, &h) == 0 && h.len > WIRE_PAYLOAD_MAX)
        abort();
    struct wire_reader r = { (const char *)p, n };
    struct wire_field f;
    size_t fields = 0;
    while (wire_next(&r, &f) == 1) {
        _cleanup_free_ char *s = NULL;
        uint64_t v;
        if (f.p < (const char *)p || f.p + f.n > (const char *)p + n || ++fields > n)
            abort();
        (void)wire_field_u64(&f, &v);
        if (wire_field_str(&f, &s) == 0 && strlen(s) != f.n)
            abort();
    }
    return 0;
}
