/* volume - files that outlive sandboxes, and that several may see at once.
 *
 * A subvolume with a limit of its own. A sandbox names the volumes it sees when it is made, and one
 * that is seen stays. Outside of any sandbox its files are reached through a cell that has nothing
 * else: it comes up on first use and goes when it was idle for a while, so the host opens no path of a
 * volume. `who` is the id or the name. Calls block for as long as the keeper takes. */
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "base/id.h"
#include "core/bucket.h"
#include "core/core.h"
#include "core/sandbox.h"

#define VOLUME_SIZE_MB 10240 /* where none is asked for */
#define VOLUME_SIZE_MB_MIN 16
#define VOLUME_SIZE_MB_MAX 16777216

struct volume {
    char id[ID_SIZE];
    char owner[OWNER_MAX];
    char name[NAME_MAX_LEN + 1];
    uint64_t size_bytes; /* what it may hold; 0: a bucket, which has no limit of ours */
    struct bucket bucket;
    int64_t created_ms;
    unsigned sandboxes; /* that see it; filled by get and list */
};

/* name NULL: its id. -EEXIST, name_taken; quotas and bounds as sandboxes have them. */
int volume_create(struct core *core, const char *owner, const char *name, uint64_t size_bytes,
                  struct volume *ret_v, struct err *err);
/* A bucket's volume; nothing is asked of it before a sandbox sees it. Failures as of bucket_check too. */
int volume_create_bucket(struct core *core, const char *owner, const char *name,
                         const struct bucket *bucket, struct volume *ret_v, struct err *err);
bool volume_is_bucket(const struct volume *v);
/* -ENOENT, volume_not_found. */
int volume_get(struct core *core, const char *owner, const char *who, struct volume *ret_v,
               struct err *err);
/* In order of creation; free(*ret_vs). */
int volume_list(struct core *core, const char *owner, struct volume **ret_vs, size_t *ret_n,
                struct err *err);
int volume_resize(struct core *core, const char *owner, const char *who, uint64_t size_bytes,
                  struct volume *ret_v, struct err *err);
/* -EBUSY, volume_in_use, while a sandbox has it or a request is at work in it. */
int volume_remove(struct core *core, const char *owner, const char *who, struct err *err);
int volume_used(struct core *core, const char *id, uint64_t *ret_bytes, struct err *err);

/* Its cell, for the calls of file.h, until volume_leave. owner NULL: any. */
int volume_enter(struct core *core, const char *owner, const char *who, struct sandbox *ret_s,
                 struct err *err);
void volume_leave(struct core *core, const struct sandbox *s);
