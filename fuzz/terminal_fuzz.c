/* Output shown on a terminal: however it is cut, no escape but a colour gets through. */
#include <stdlib.h>
#include <string.h>

#include "cli/sanitise.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static int harmless(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c == '\033') {
            if (++i == n || p[i] != '[')
                return 0;
            while (++i < n && strchr("0123456789;:", p[i]) && p[i])
                ;
            if (i == n || p[i] != 'm')
                return 0;
        } else if (c < 0x20 && c != '\n' && c != '\t' && c != '\r') {
            return 0;
        }
    }
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct sanitiser s = { 0 };
    struct buf out = BUF_INIT(16u << 20);
    size_t cut = n ? p[0] % (n + 1) : 0;
    if (sanitise(&s, (const char *)p, cut, &out) < 0 ||
        sanitise(&s, (const char *)p + cut, n - cut, &out) < 0 || sanitise_end(&s, &out) < 0)
        abort();
    if (!harmless(out.data, out.len))
        abort();
    buf_done(&out);
    return 0;
}
