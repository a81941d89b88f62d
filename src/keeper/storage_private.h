/* storage_private - what the files of the storage share. storage.c opens it; storage_pool.c is what
 * it all lies on; storage_box.c, storage_point.c, storage_image.c, storage_volume.c and
 * storage_memory.c are what lies there; storage_carried.c is what a copy begins with, storage_kept.c what
 * checkpoints of volumes keep; storage_trash.c is the way out. */
#pragma once
#include <limits.h>
#include <stddef.h>

#include "keeper/storage.h"

#define PART_SUFFIX ".part"
#define STORAGE_NAME_SIZE 128

/* Entries in the full quotas' books of subvolumes that are gone. The kernel lets go of one only
 * after it has written it as empty, so they are kept until a later round. */
struct entries {
    uint64_t *p;
    size_t n, size;
    int64_t tried_ms;
};

struct storage {
    int pool, images, boxes, points, volumes, volume_points, spool, empty, trash;
    bool own_image, quota, simple_quota;
    struct entries dead;
    char path[PATH_MAX];
};

/* Mounts the pool, made if need be, and opens it: st->path, st->pool, st->own_image. */
int storage_pool_mount(struct storage *st, const char *data_dir, struct err *err);
/* Has full quotas counted anew if the kernel has lost count, for whatever reason. */
void storage_mend_quota(const struct storage *st);
/* An earlier version had them in groups with full quotas too: no copy of them would be counted right. */
void storage_volumes_leave_groups(struct storage *st);
/* Names in a directory; stops when fn returns below zero. */
int storage_each_in(int dirfd, int (*fn)(const char *name, void *arg), void *arg);

int storage_box_open(struct storage *st, const char *id); /* -1 and errno */
/* Of a new, empty subvolume that is to be a box or a point. */
int storage_box_fill(struct storage *st, int box, uint64_t disk_bytes, struct err *err);

/* What has this name is not finished: it is thrown away at the next start. */
int storage_part_name(const char *name, char out[STORAGE_NAME_SIZE]);
/* Missing is fine. What is read-only cannot be moved: that changes its "..". */
int storage_move_to_trash(struct storage *st, int from, const char *name, struct err *err);
/* The number of the group of a volume's subvolumes, or of a sandbox's: any will do that differs from others'. */
uint64_t storage_group(const char *id);
/* What is thrown away under such a name, with its id behind it, leaves a group behind. */
#define TRASH_VOLUME "volume-"
#define TRASH_BOX "box-"
bool storage_group_entry(const struct storage *st, const char *name, uint64_t *ret_entry);

/* ---- storage_carried.c ---- */

uint64_t storage_carried(const struct storage *st, int fd);
/* How much a box or volume may write of its own. */
uint64_t storage_room(const struct storage *st, int fd, uint64_t disk_bytes);
/* Of a new checkpoint in directory `dir`: it is of `of` and holds so much, with what that carries. */
int storage_note_total(const struct storage *st, int dir, const char *point, const char *of,
                       uint64_t bytes, struct err *err);
void storage_forget_total(const struct storage *st, int dir, const char *point);
/* A new copy of a checkpoint, for `id`. counted: what `id` wrote before still counts for it. */
int storage_carry(const struct storage *st, int copy_fd, int dir, const char *point, const char *id,
                  bool counted, struct err *err);

/* With simple quotas a block counts for the subvolume that wrote it, so one made from a checkpoint begins with nothing. The
 * boxes that a sandbox has had are therefore a group, once it has had two: going back gives no room away. */
bool storage_box_grouped(struct storage *st, const char *id);

#define STORAGE_NESTED_MAX 64 /* levels of subvolumes inside of a volume */

/* ---- storage_kept.c: with full quotas ---- */

/* Limits a volume to disk_bytes with what its checkpoints keep. */
int storage_kept_limit(const struct storage *st, const char *id, int volume_fd, uint64_t disk_bytes,
                       struct err *err);
/* The same limit, where its checkpoints or the subvolumes inside of it are others now. */
int storage_kept_limit_again(const struct storage *st, const char *id, struct err *err);
uint64_t storage_kept_used(int volume_fd); /* by both */
/* A checkpoint of a volume, recorded; its volume's limits follow, as they do when it is to be deleted. */
int storage_kept_snapshot(const struct storage *st, const char *point, const char *id,
                          int volume_fd, struct err *err);
void storage_kept_forget(const struct storage *st, const char *point);
