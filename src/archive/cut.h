/* cut - where a stream is cut into pieces, by what is in it.
 *
 * A hash over the last 64 bytes decides, so bytes that are inserted or removed move the cuts near them and no others: pieces
 * further on are the same as before. The hash's table and the bounds are part of the format of archives: another
 * choice would still read old ones, but share nothing with them. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct cut {
    uint64_t gear[256];
};

void cut_init(struct cut *c);
/* How long the piece is that begins at p; n: what there is, at least CHUNK_MAX unless the stream ends there. */
size_t cut_find(const struct cut *c, const unsigned char *p, size_t n);
