/* unpack - what passes between warren-keeper, warrend and warren-unpack.
 *
 * The keeper starts warren-unpack with one word that says what to do and three descriptors. It does
 * that one thing, sends one struct unpack_report and exits; a report that does not come means it
 * was killed. Everything in a report was made by a process that read hostile bytes. */
#pragma once
#include <stdint.h>

#include "base/err.h"

#define UNPACK_REPORT_FD 3
#define UNPACK_FIRST_FD 4
#define UNPACK_SECOND_FD 5

#define UNPACK_APPLY "apply" /* first: a layer (tar, packed or not); second: the tree to fill */
#define UNPACK_DIFF "diff"   /* first: a box; second: where to write a layer (tar) */
#define UNPACK_SPLIT "split" /* first: an image archive; second: where to write its members */

#define UNPACK_HEX_SIZE 65

struct unpack_report {
    int32_t code; /* 0: done; else a positive errno */
    char what[40];
    char msg[ERR_MSG_MAX];
    char diff_id[UNPACK_HEX_SIZE]; /* apply: sha256 of the tar without its packing */
    uint64_t size_bytes;           /* apply: blocks that the layer's files take */
};

/* Split writes frames: this head, the name, then `size` bytes of a file or of a link's target. */
enum split_kind {
    SPLIT_FILE = 1,
    SPLIT_LINK,   /* symbolic or hard: the bytes are the target, as it is written */
    SPLIT_ROOTFS, /* this is a root filesystem, not an image archive: nothing follows */
    SPLIT_END,
};
#define SPLIT_NAME_MAX 1024

struct split_head {
    uint32_t kind;
    uint32_t name_len;
    uint64_t size;
};
