/* volume_checkpoint - a volume's files as they were, to go back to or to go on from elsewhere.
 *
 * A copy that shares what did not change since; it counts for the volume's size. Made while sandboxes
 * write: what was written out is flushed, they stand still for a moment, and see nothing else of it. Going
 * back needs the volume to itself, since nobody's open files can be exchanged. `volume` and `who` are
 * ids or names. Goes with its volume. */
#pragma once
#include "core/volume.h"

#define VOLUME_COMMENT_MAX 1024

struct volume_checkpoint {
    char id[ID_SIZE];
    char owner[OWNER_MAX];
    char volume[ID_SIZE];
    char name[NAME_MAX_LEN + 1]; /* or "" */
    char comment[VOLUME_COMMENT_MAX + 1];
    int64_t created_ms;
    uint64_t bytes;     /* that the volume and its checkpoints took then */
    uint64_t frozen_us; /* how long sandboxes stood still; told once, not kept */
};

/* name, comment NULL: none. -EEXIST, name_taken. */
int volume_checkpoint_create(struct core *core, const char *owner, const char *volume,
                             const char *name, const char *comment, struct volume_checkpoint *ret_c,
                             struct err *err);
/* -ENOENT, volume_not_found or checkpoint_not_found. */
int volume_checkpoint_get(struct core *core, const char *owner, const char *volume, const char *who,
                          struct volume_checkpoint *ret_c, struct err *err);
/* In order of creation; free(*ret_cs). */
int volume_checkpoint_list(struct core *core, const char *owner, const char *volume,
                           struct volume_checkpoint **ret_cs, size_t *ret_n, struct err *err);
int volume_checkpoint_remove(struct core *core, const char *owner, const char *volume,
                             const char *who, struct err *err);
/* The volume has these files from now on. -EBUSY, volume_in_use, which names the sandboxes that have it
 * and are not stopped. */
int volume_checkpoint_restore(struct core *core, const char *owner, const char *volume,
                              const char *who, struct volume *ret_v, struct err *err);
/* A new volume with these files; name NULL: its id; size_bytes 0: as large as that one. */
int volume_checkpoint_fork(struct core *core, const char *owner, const char *volume,
                           const char *who, const char *name, uint64_t size_bytes,
                           struct volume *ret_v, struct err *err);
