/* archive - checkpoints in object storage, for as long as nobody needs them here.
 *
 * A checkpoint's files become a stream, the stream becomes pieces cut by what is in them, each known by its digest and stored
 * once, whoever needs it: what did not change since an earlier archive is not sent again. The manifest comes last and makes the
 * archive; the copy here goes only after all of it was seen there. On the way back every piece and the whole are compared with
 * their digests before the checkpoint has its name again. Who uses an archived one (restore, fork, start) brings it back first.
 *
 *   archives/<owner>/<id>   the manifest       chunks/<2 digits>/<digest>   a piece, zstd
 *   layers/<digest>         which pieces an image's layer is               locks/…
 *
 * One operation on a checkpoint at a time; others wait for it. Calls block for as long as the network takes. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/checkpoint.h"

struct archive_config {
    const char *bucket, *prefix, *endpoint, *region; /* bucket NULL: there is no object storage */
    const char *key_id, *secret, *token;
    const char *ca_file;
    unsigned timeout_s;
};

struct archive_progress {
    const char *stage;     /* "image", "files", "memory", "check"; a literal */
    uint64_t bytes, total; /* of this stage; total 0: not known */
    uint64_t pieces, sent; /* of all stages: pieces so far; those of them that had to be moved */
    uint64_t moved_bytes;  /* sent or fetched, packed */
};
/* Called now and then; false: stop. */
typedef bool archive_told_fn(void *ctx, const struct archive_progress *p);

struct archive_tell { /* NULL everywhere: nobody */
    archive_told_fn *fn;
    void *ctx;
};

bool archive_ready(const struct core *core); /* there is an object storage */
/* "s3://bucket/prefix"; NULL: none */
const char *archive_where(const struct core *core);

/* Puts it there; keep_local false: and gives up its files here. One that is there already is only that. -EINVAL,
 * archive_unavailable: no storage was configured. */
int archive_put(struct core *core, const char *owner, const char *who, bool keep_local,
                const struct archive_tell *tell, struct checkpoint *ret_c, struct err *err);
/* Its files are here again; the archive stays. */
int archive_fetch(struct core *core, const char *owner, const char *who,
                  const struct archive_tell *tell, struct checkpoint *ret_c, struct err *err);
/* The archive goes. -EBUSY, checkpoint_away: it has no files here. */
int archive_remove(struct core *core, const char *owner, const char *who, struct err *err);

/* Stops it, keeps its files as a checkpoint of reason "archive" there, and none here. */
int archive_sandbox(struct core *core, const char *owner, const char *who,
                    const struct archive_tell *tell, struct sandbox *ret_s, struct err *err);

struct archive_entry {
    char id[ID_SIZE];
    int64_t archived_ms;
    uint64_t manifest_bytes;
    bool known; /* this daemon has it among its checkpoints */
};
/* What the storage holds of an owner's; free(*ret_entries). */
int archive_list(struct core *core, const char *owner, struct archive_entry **ret_entries,
                 size_t *ret_n, struct err *err);
/* Makes one that is there a checkpoint of this daemon, away; its image's layers come at once. */
int archive_import(struct core *core, const char *owner, const char *id,
                   const struct archive_tell *tell, struct checkpoint *ret_c, struct err *err);

struct archive_collected {
    uint64_t pieces, bytes; /* that went */
    bool busy;              /* somebody archives: nothing was done */
};
/* Removes pieces that no archive needs. */
int archive_collect(struct core *core, struct archive_collected *ret, struct err *err);
