/* chunks - what passes between warrend and warren-archive when a stream is archived in pieces.
 *
 * Both ways a head, then `packed` bytes. `chunk` reads a stream (0) and writes heads (1): of each piece, CHUNK_KNOWN without bytes
 * where its digest is among those it was told of (3: digests one after the other, sorted), and CHUNK_END with the digest and
 * length of it all. `join` reads the same (0), CHUNK_DATA only, and writes the stream (1), of which not a byte comes from a piece
 * that is not what its digest says; what it found is a struct chunk_report (4). Integers are the machine's own: both
 * ends are on one. */
#pragma once
#include <stdint.h>

#define CHUNK_MIN (256u * 1024)
#define CHUNK_USUAL (1024u * 1024)
#define CHUNK_MAX (4u * 1024 * 1024)
#define CHUNK_PACKED_MAX \
    (CHUNK_MAX + CHUNK_MAX / 128) /* what does not get smaller gets a little larger */
#define CHUNK_DIGEST 32           /* SHA-256, of what is in the packing */

enum chunk_kind { CHUNK_DATA = 1, CHUNK_KNOWN, CHUNK_END };

struct chunk_head {
    uint32_t kind;
    uint32_t raw, packed; /* bytes of the piece; as it is sent */
    uint32_t unused;
    uint64_t total; /* CHUNK_END */
    uint8_t digest[CHUNK_DIGEST];
};

struct chunk_report {
    int32_t code; /* 0; else a positive errno, EBADMSG: a piece is not what it should be */
    uint32_t unused;
    uint64_t pieces; /* that were right */
};
