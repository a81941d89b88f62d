/* storage - where images and sandboxes lie: subvolumes of one btrfs, ours or the host's.
 *
 *   pool/images/<tree>        an image's root filesystem, read-only
 *   pool/boxes/<id>/{upper,work}   what a sandbox changed; ids on disk are the sandbox's own
 *   pool/points/<id>          a box as it was at a checkpoint, read-only
 *   pool/memory/<id>          and its memory (storage_memory.h)
 *   pool/volumes/<id>         files that outlive sandboxes; ids on disk as in a sandbox
 *   pool/volume-points/<id>   a volume as it was at a checkpoint, read-only
 *   pool/spool/<id>           what is being written to a bucket
 *   pool/empty                the root of a cell without an image
 *   pool/trash/<name>         on its way out; the sweeper deletes it
 *
 * Where the data directory is not on btrfs, the pool is an image file of our own, mounted in the
 * keeper's mount namespace only. Everything is reached from descriptors held open here. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct storage;

/* Makes the pool on first use (mkfs takes a moment). The mount namespace must be private. */
int storage_open(const char *data_dir, struct storage **ret_st, struct err *err);
void storage_free(struct storage *st);
DEFINE_FREEP(struct storage *, storage_free)
/* In a process that only works on the storage: close every descriptor but the storage's own,
 * `also` and the three standard ones. */
void storage_close_others(const struct storage *st, int also);

/* In a process that has entered another mount namespace: what is held open is of this one, where it can be
 * mounted from. The old descriptors stay open: such a process is short-lived. */
int storage_reopen(struct storage *st, struct err *err);

const char *storage_path(const struct storage *st); /* where the pool is mounted */

struct storage_facts {
    bool own_image, quota, simple_quota;
};
void storage_facts(const struct storage *st, struct storage_facts *ret_facts);
struct keeper_room;
void storage_room_left(const struct storage *st, struct keeper_room *ret_room);
/* Bytes count for whoever wrote them, not for all who have them (simple quotas). */
bool storage_counts_writers(const struct storage *st);

/* The returned descriptors are owned. storage_box makes the box if it is not there. */
int storage_box(struct storage *st, const char *id, uint64_t disk_bytes, int *ret_fd,
                struct err *err);
int storage_box_limit(struct storage *st, const char *id, uint64_t disk_bytes, struct err *err);
/* What a sandbox changed: its overlay's upper directory. */
int storage_box_upper(struct storage *st, const char *id, int *ret_fd, struct err *err);
uint64_t storage_box_used(struct storage *st, const char *id);
int storage_box_trash(struct storage *st, const char *id, struct err *err); /* missing is fine */

/* Writes out what a box holds that is not on disk yet, which may take long, so that storage_point_put
 * soon after it takes little. Leaves something for the sweeper. */
int storage_flush(struct storage *st, int subvolume_fd, struct err *err);
int storage_box_flush(struct storage *st, const char *id, struct err *err);
/* A box as it is now, kept under a name of its own. */
int storage_point_put(struct storage *st, const char *point, const char *id, struct err *err);
int storage_point_upper(struct storage *st, const char *point, int *ret_fd, struct err *err);
int storage_point_trash(struct storage *st, const char *point, struct err *err); /* as above */
/* A new one to fill: its upper directory, empty. Then keep it under its name or throw it away. */
int storage_point_begin(struct storage *st, const char *point, uint64_t disk_bytes, int *ret_fd,
                        struct err *err);
int storage_point_commit(struct storage *st, const char *point, struct err *err);
void storage_point_abort(struct storage *st, const char *point);
/* A new box with what a point holds, which then takes the place of one that is there, and must not run by then. */
int storage_box_make(struct storage *st, const char *id, const char *point, struct err *err);
bool storage_box_is_made(struct storage *st, const char *id); /* and has not taken its place */
int storage_box_put(struct storage *st, const char *id, uint64_t disk_bytes, struct err *err);

/* KEEPER_IMAGE_NONE is always there, and empty. */
int storage_image(struct storage *st, const char *tree, int *ret_fd, struct err *err);
/* A new tree to fill: empty, or a copy of `parent` (not ""); then keep it under its name or throw
 * it away. */
int storage_image_begin(struct storage *st, const char *tree, const char *parent, int *ret_fd,
                        struct err *err);
int storage_image_commit(struct storage *st, const char *tree, struct err *err);
void storage_image_abort(struct storage *st, const char *tree);
int storage_image_trash(struct storage *st, const char *tree, struct err *err);

/* Makes a volume if it is not there; it holds disk_bytes at most, its checkpoints included. */
int storage_volume_put(struct storage *st, const char *id, uint64_t disk_bytes, struct err *err);
int storage_volume(struct storage *st, const char *id, int *ret_fd, struct err *err);
/* What it and its checkpoints take; what they share counts once. */
uint64_t storage_volume_used(struct storage *st, const char *id);
int storage_volume_trash(struct storage *st, const char *id, struct err *err); /* missing is fine */
/* Count subvolumes that lie inside a volume for the volume's quota. */
void storage_volumes_count_nested(struct storage *st);
/* Of volumes as of boxes, above. storage_volume_restore: in place of the files of one that is there, which nobody
 * may be using, or of a new one. */
int storage_volume_flush(struct storage *st, const char *id, struct err *err);
int storage_volume_point_put(struct storage *st, const char *point, const char *id,
                             struct err *err);
int storage_volume_point_trash(struct storage *st, const char *point, struct err *err);
int storage_volume_restore(struct storage *st, const char *id, const char *point,
                           uint64_t disk_bytes, struct err *err);

/* A new directory that holds disk_bytes at most. */
int storage_spool(struct storage *st, const char *id, uint64_t disk_bytes, int *ret_fd,
                  struct err *err);
int storage_spool_trash(struct storage *st, const char *id, struct err *err); /* as above */

enum storage_kind {
    STORAGE_BOXES,
    STORAGE_IMAGES,
    STORAGE_VOLUMES,
    STORAGE_POINTS,
    STORAGE_VOLUME_POINTS,
    STORAGE_SPOOLS
};
/* Names of what is there; stops when fn returns below zero. */
int storage_each(struct storage *st, enum storage_kind kind, int (*fn)(const char *name, void *arg),
                 void *arg);

/* Throw away what a keeper's death cut off before it had its name. */
void storage_drop_unfinished(struct storage *st);
bool storage_is_tight(
    const struct storage *st); /* little is free: emptying the trash frees it at once */
/* Delete everything in the trash; slow. */
void storage_empty_trash(struct storage *st);
bool storage_is_tight(const struct storage *st); /* little of the pool is free */
