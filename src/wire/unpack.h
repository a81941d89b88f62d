/* unpack - messages between warren-keeper, warrend and warren-unpack.
 *
 * The keeper starts warren-unpack with one word that says what to do, the bounds of an archive
 * in two numbers (struct unpack_bounds), and three descriptors. It does that one thing, sends
 * one struct unpack_report and exits; a missing report means that it was killed. Treat
 * everything in a report as made by a process that read hostile bytes. */
#pragma once
#include <stdint.h>

#include "base/err.h"

#define UNPACK_REPORT_FD 3
#define UNPACK_FIRST_FD 4
#define UNPACK_SECOND_FD 5
#define UNPACK_THIRD_FD 6
#define UNPACK_FOURTH_FD 7
#define UNPACK_FIFTH_FD 8

#define UNPACK_APPLY "apply" /* first: a layer (tar, packed or not); second: the tree to fill */
#define UNPACK_DIFF "diff"   /* first: a box; second: where to write a layer (tar) */
#define UNPACK_READ "read"   /* first: a box; second: where to write all of it (tar) */
#define UNPACK_LAY "lay"     /* first: what `read` wrote; second: the empty box to fill */
#define UNPACK_SPLIT "split" /* first: an image archive; second: where to write its members */
/* first: where to write; second: a box; third: its image's tree */
#define UNPACK_CHANGES "changes"
/* The same, with fourth: an earlier box; fifth: struct compare_query and its paths */
#define UNPACK_COMPARE "compare"

#define UNPACK_HEX_SIZE 65

/* How much an archive may hold; 0: no bound. */
struct unpack_bounds {
    uint64_t bytes; /* apply: of files it makes */
    uint64_t ratio; /* apply, split: times its own size, above UNPACK_RATIO_FLOOR */
};
#define UNPACK_RATIO_FLOOR (64ull * 1024 * 1024) /* smaller archives are no bombs */
#define UNPACK_ENTRY_BYTES 512                   /* about what a filesystem needs for an entry */

struct unpack_report {
    int32_t code;    /* 0: done; else a positive errno */
    int32_t failure; /* an enum failure */
    char msg[ERR_MSG_MAX];
    char diff_id[UNPACK_HEX_SIZE]; /* apply: sha256 of the tar without its packing */
    uint64_t size_bytes;           /* apply: blocks that the layer's files and entries take */
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

/* What of it is wanted. The paths follow, each absolute, clean and with a NUL at its end. */
#define COMPARE_PATHS_MAX 64
#define COMPARE_PATHS_BYTES (64 * 1024)

struct compare_query {
    uint32_t n_paths; /* those and what is below them; 0: all */
    uint32_t paths_len;
    uint32_t text; /* 1: how texts changed, too */
    uint32_t unused;
    int64_t
        shared_before_ms; /* an inode that did not change since is the same in both; 0: unknown */
};

/* Changes are told as these, each with its path after it, and then its text; "/etc/hosts" is a path,
 * without NUL. */
#define CHANGES_MAX 100000
#define CHANGES_WALK_MS 300000 /* in which two states are compared, however many files they have */
#define CHANGE_TEXT_MAX (256 * 1024)            /* of one file */
#define CHANGES_TEXT_MAX (8 * 1024 * 1024)      /* of all */
#define CHANGE_TEXT_FILE_MAX (2 * 1024 * 1024u) /* what is larger is not looked into */

enum change_kind {
    CHANGE_ADDED = 1,
    CHANGE_CHANGED,
    CHANGE_REMOVED, /* with everything in it */
    CHANGE_END,     /* the last, without a path; mode: 0, or CHANGES_CUT: there are more */
};
#define CHANGES_CUT 1

enum change_text {
    CHANGE_TEXT_NONE, /* not asked for, or neither a file nor a link */
    CHANGE_TEXT_WHOLE,
    CHANGE_TEXT_CUT,    /* there is more than CHANGE_TEXT_MAX */
    CHANGE_TEXT_BINARY, /* not UTF-8, or with a NUL in it */
    CHANGE_TEXT_LARGE,  /* a file, or all texts so far */
    CHANGE_TEXTS,
};

struct change_head {
    uint32_t kind;
    uint32_t mode, mode_before; /* 0: not there */
    uint32_t path_len;
    uint32_t text;              /* enum change_text */
    uint32_t text_len;          /* hunks of a unified diff; a link's text is its target */
    uint64_t size, size_before; /* of files */
    int64_t mtime_ms;
};
