/* memory_meta - what CRIU's images do not say of a cell: kept beside them, as lines of text.
 *
 *   name HEX               the socket its init waits at (wire/park.h)
 *   id ID                  whose it was
 *   steered 1              every address is local there (kernel/steer.h)
 *   boot UUID              what it showed as its boot id
 *   uptime SECONDS         of its clocks, then
 *   mount KIND PATH        mounts that are made from outside: dev, empty, nothing, shown, boot, stat, size (cell/ns), shm
 *   volume ID ro|rw PATH
 *   member N PID           which group below its work a process is in
 *
 * Pure: text in, structs out, and back. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "cell/ns_boot.h"
#include "wire/park.h"

#define META_FILE "warren"
#define META_MAX (4u * 1024 * 1024)
#define META_PATH_SIZE 4096

enum meta_mount_kind {
    META_DEV,
    META_EMPTY,
    META_NOTHING,
    META_SHOWN, /* cell/ns_show.h */
    META_BOOT,
    META_STAT,
    META_SIZE, /* cell/ns_size.h */
    META_SHM,
    META_VOLUME,
    META_KINDS
};

struct meta_mount {
    enum meta_mount_kind kind;
    bool read_only; /* a volume */
    char volume[ID_SIZE];
    char *path; /* inside */
};

struct meta_member {
    unsigned family;
    pid_t pid; /* inside */
};

struct meta {
    char name[PARK_NAME_SIZE];
    char id[ID_SIZE];        /* or "" */
    char boot[NS_BOOT_SIZE]; /* or "" */
    uint32_t uptime_s;       /* or 0 */
    uint32_t kib;            /* of all of CRIU's images, or 0 */
    bool steered;
    struct meta_mount *mounts;
    size_t nmounts;
    struct meta_member *members; /* those of one family stand together */
    size_t nmembers;
};
#define META_INIT  \
    {              \
        .name = "" \
    }
void meta_done(struct meta *m);

/* The text of /proc/PID/mountinfo: fills mounts. -ENOTSUP names one that cannot be brought back. */
int meta_read_mounts(struct meta *m, char *text, struct err *err);
bool meta_has(const struct meta *m, enum meta_mount_kind kind);
int meta_add_shm(struct meta *m); /* an empty /dev/shm is made anew rather than kept */
int meta_add_member(struct meta *m, unsigned family, pid_t pid);

/* What CRIU is told of the mounts: "mnt[PATH]:" and what `place` says of each. meta_external_free. */
typedef int (*meta_place_fn)(const void *arg, size_t i, char *out, size_t size);
int meta_external(const struct meta *m, meta_place_fn place, const void *arg,
                  const char ***ret_texts, struct err *err);
void meta_external_free(const struct meta *m, const char **texts);

int meta_print(const struct meta *m, struct buf *b);
int meta_parse(char *text, struct meta *ret_m, struct err *err); /* text is changed */
