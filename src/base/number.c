#include "base/number.h"

#include <errno.h>
#include <stdlib.h>

int number_u32(const char *text, uint32_t max, uint32_t *ret_v)
{
    char *end;
    errno = 0;
    unsigned long v = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || errno || *end || v > max)
        return -EINVAL;
    *ret_v = (uint32_t)v;
    return 0;
}
