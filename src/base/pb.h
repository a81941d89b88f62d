/* pb - protobuf's wire format, as far as small messages need it.
 *
 * A writer that appends fields to a buffer and a reader that walks over them; what a number means is
 * the caller's. Nothing is trusted: a length that leads outside ends the walk with -EPROTO. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

int pb_put_int(struct buf *b, unsigned number, uint64_t value);
int pb_put_bytes(struct buf *b, unsigned number, const void *p, size_t n);
int pb_put_str(struct buf *b, unsigned number, const char *s); /* NULL: nothing */

struct pb_field {
    unsigned number;
    uint64_t value; /* of a number */
    const char *p;  /* of bytes; NULL: it is a number */
    size_t n;
};

struct pb_reader {
    const char *p;
    size_t n;
};

int pb_next(struct pb_reader *r, struct pb_field *ret_field); /* 1; 0 at the end; -EPROTO */
