/* volume_private - what volume.c and volume_cell.c share. */
#pragma once
#include "core/private.h"
#include "core/volume.h"
#include "core/volume_checkpoint.h"

enum volume_cell { VOLUME_CELL_NONE, VOLUME_CELL_COMING, VOLUME_CELL_UP, VOLUME_CELL_GOING };

struct volume_entry {
    struct volume v;
    bool unsure;    /* being made or removed: nobody's */
    bool restoring; /* its files are being exchanged: whoever wants to see them waits */
    enum volume_cell state;
    char cell[ID_SIZE];
    bool died;       /* its cell did: it goes as soon as nobody is inside */
    unsigned inside; /* requests at work in it, or waiting for it to come up */
    int64_t up_ms;   /* monotonic: when it came up */
    int64_t idle_ms; /* monotonic: since when nobody is inside */
};

/* With the table's lock held; NULL: there is none that is sure. owner NULL: any. */
struct volume_entry *volumes_find(struct core *core, const char *owner, const char *who);
int volume_missing(struct err *err, const char *who);

/* ---- volume.c ---- */
struct volume_entry *volumes_by_id(struct core *core, const char *id); /* sure or not */
int volumes_add(struct volumes *vs, const struct volume_entry *e);     /* a copy; -ENOMEM */
struct volume_ask {
    const char *name; /* NULL: its id */
    uint64_t size_bytes;
    const struct volume_checkpoint *from; /* NULL: empty */
    const struct bucket *bucket;          /* NULL: none */
};
/* In a place of its own among the volumes, seen by nobody until it is settled. */
int volumes_make(struct core *core, const char *owner, const struct volume_ask *ask,
                 struct volume *ret_v, struct err *err);
int volume_refuse_bucket(struct err *err, const struct volume *v); /* -EINVAL, not_supported */
void volumes_tell(struct core *core, const struct volume *v, const char *type);
/* The volume's cell, which nobody is in, goes; waits for requests that are about to end. */
void volumes_let_requests_end(struct core *core, const char *owner, const char *who);
int volumes_end_cell(struct core *core, const char *id, const char *cell, struct err *err);

/* ---- volume_row.c ---- */
int volumes_save(struct core *core, const struct volume *v, struct err *err);

/* ---- volume_show.c ---- */
/* Shows it in a running cell. */
int volumes_show(struct core *core, const char *cell, const char *volume, const char *path,
                 bool read_only, struct err *err);

/* ---- volume_lost.c ---- */
struct volume_lost {
    char sandbox[ID_SIZE], volume[ID_SIZE];
    int64_t due_ms; /* monotonic: when to show it again */
    unsigned tries;
    bool told; /* that it is gone */
};
/* With the table's lock held. */
void volumes_note_buckets(struct core *core); /* all that are seen: are they shown? */
int64_t volumes_next_lost(const struct volumes *vs, int64_t until);
bool volumes_find_lost(
    struct core *core); /* shows one again, without the lock meanwhile; false: none is due */

/* ---- volume_checkpoint.c ---- */
int volume_checkpoints_load(struct core *core, struct err *err);
int volume_checkpoints_adopt(struct core *core, struct err *err);
void volume_checkpoints_drop(struct core *core, const char *volume); /* the volume is gone */
struct box;
/* With the table's lock held. */
bool volumes_sees(const struct box *b, const char *volume_id);
bool volumes_at_rest(const struct box *b); /* it is stopped, and nobody is about to start it */

/* ---- volume_checkpoint_use.c ---- */
/* VOLUME_RESTORE, for which see wire/keeper.h. */
int volume_checkpoints_fill(struct core *core, const struct volume *v, const char *checkpoint,
                            struct err *err);
