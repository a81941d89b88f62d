/* span - the Range header: one range of bytes.
 *
 * Several ranges, or another unit, are as if there were none: the answer is whole. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct span {
    bool given, suffix;
    uint64_t first, last; /* suffix: the last `last` bytes; last UINT64_MAX: to the end */
};

/* NULL: none is given. -EINVAL: not a range. */
int span_parse(const char *header, struct span *ret_range);
/* A suffix as a range from the beginning, of a file that has `size` bytes. -ERANGE: it takes in
 * nothing. */
int span_settle(struct span *g, uint64_t size);
