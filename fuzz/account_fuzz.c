/* Users: the sandbox's own passwd and group files, and a client's word for who. */
#include <string.h>

#include "init/account.h"

int LLVMFuzzerTestOneInput(const unsigned char *p, size_t n);

int LLVMFuzzerTestOneInput(const unsigned char *p, size_t n)
{
    char spec[ACCOUNT_SPEC_MAX];
    size_t len = n ? p[0] % 16 : 0;
    if (n < 1 + len)
        return 0;
    memcpy(spec, p + 1, len);
    spec[len] = '\0';
    const char *text = (const char *)p + 1 + len;
    size_t left = n - 1 - len, half = left / 2;
    struct account a;
    if (account_resolve(spec, (struct account_text){ text, half },
                        (struct account_text){ text + half, left - half }, &a) == 0)
        account_done(&a);
    return 0;
}
