/* The first bytes of a client: the answer does not depend on how they were cut, and a name that is
 * found has the one form that names are compared in. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/hello.h"
#include "net/opening.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    char name[HOST_SIZE], early[HOST_SIZE], again[HOST_SIZE];
    if (n < 1)
        return 0;
    uint16_t port = p[0] & 1 ? 443 : 8080;
    size_t cut = p[0] >> 1;
    p++;
    n--;
    enum opening whole = opening_read(p, n, port, name);
    if (whole == OPENING_TLS &&
        (host_canon(name, strlen(name), again) < 0 || strcmp(name, again) != 0))
        abort();
    if (cut >= n)
        return 0;
    /* What was said of the beginning holds for all of it. */
    enum opening part = opening_read(p, cut, port, early);
    if (part != OPENING_MORE && part != whole)
        abort();
    if (part == OPENING_TLS && strcmp(name, early) != 0)
        abort();
    return 0;
}
