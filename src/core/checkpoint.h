/* checkpoint - the files of a sandbox as they were at one moment.
 *
 * Taken from one that runs (which stands still for some milliseconds) or is stopped; shares with it whatever
 * neither changes. Checkpoints form a tree: each knows the one that its sandbox's files came from
 * before, and one that is removed leaves its place to its parent. It keeps what a sandbox is besides its
 * files too, so that others can be made from it when the first is long gone. `who` is an id, a
 * name among those of one sandbox, a name that only one has, or "SANDBOX:NAME". Calls block for as long as the keeper takes. */
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "base/id.h"
#include "core/core.h"
#include "core/digest.h"
#include "core/sandbox.h"
#include "wire/keeper.h"

#define CHECKPOINT_COMMENT_MAX 4096
#define CHECKPOINT_FORKS_MAX 100 /* at once */

struct checkpoint {
    char id[ID_SIZE];
    char owner[OWNER_MAX];
    char sandbox[ID_SIZE];       /* whose files these were; it may be gone */
    char parent[ID_SIZE];        /* "": none */
    char name[NAME_MAX_LEN + 1]; /* unique among its sandbox's; "": none */
    char reason[16]; /* "asked", "fork", …; two are in no list: of pauses, of templates */
    char tree[KEEPER_IMAGE_SIZE]; /* what the files lie on */
    char *comment;                /* never NULL */
    char *spec;                   /* what the sandbox was, as spec_to_json writes it */
    struct pairs metadata;
    int64_t created_ms;
    uint64_t bytes;             /* that its sandbox had written */
    bool memory;                /* its processes too */
    uint64_t memory_bytes;      /* what they take on disk */
    uint64_t frozen_us;         /* how long it stood still; told once, not kept */
    int64_t archived_ms;        /* archive.h; 0: it is not in object storage */
    uint64_t archived_bytes;    /* what it takes there, with what it shares */
    bool away;                  /* its files are only there */
    bool going;                 /* it is being removed: nothing may begin to need it */
    bool orphan;                /* hidden, and needed no more: the timers remove it */
    char manifest[DIGEST_SIZE]; /* what we wrote there, or took over: nothing else is believed */
};
void checkpoint_done(struct checkpoint *c);

struct checkpoint_ask {
    const char *name, *comment; /* NULL: none */
    const char *reason;
    const struct pairs *metadata; /* NULL: none */
    bool memory;                  /* its processes too; it must run, or be paused */
    bool end;                     /* with memory: the sandbox ends in that moment (pause.c) */
    bool leaving; /* its files leave this host next, which makes room: fine on a full disk */
};
/* -EEXIST, name_taken; -EINVAL, invalid_field; failures as of sandbox_get. */
int checkpoint_create(struct core *core, const char *owner, const char *sandbox,
                      const struct checkpoint_ask *ask, struct checkpoint *ret_c, struct err *err);
/* sandbox: whose names come first, an id; NULL: nobody's. -ENOENT, checkpoint_not_found; -ENOTUNIQ,
 * ambiguous_name. */
int checkpoint_get(struct core *core, const char *owner, const char *sandbox, const char *who,
                   struct checkpoint *ret_c, struct err *err);
/* In order of creation; sandbox NULL: all of the owner's; else an id. checkpoint_list_free. */
int checkpoint_list(struct core *core, const char *owner, const char *sandbox,
                    struct checkpoint **ret_cs, size_t *ret_n, struct err *err);
void checkpoint_list_free(struct checkpoint *cs, size_t n);
/* -EBUSY, checkpoint_in_use: a paused sandbox needs its memory. */
int checkpoint_remove(struct core *core, const char *owner, const char *sandbox, const char *who,
                      struct err *err);

/* ---- checkpoint_use.c ---- */
/* The sandbox has these files from now on, and runs: with `memory` its processes are those of the checkpoint, if
 * that has any, else as if just started. Before or after, never between. */
int checkpoint_restore(struct core *core, const char *owner, const char *sandbox, const char *who,
                       bool memory, struct sandbox *ret_s, struct err *err);
/* A new sandbox with these files, and of the same kind; name NULL: none. With `memory` also with these
 * processes, if there are any. */
int checkpoint_start(struct core *core, const char *owner, const char *sandbox, const char *who,
                     const char *name, bool memory, struct sandbox *ret_s, struct err *err);
/* Copies of a sandbox, all running, from a checkpoint that is made for it and stays. All of them, or none and
 * the first failure; sandbox_done each, free(*ret_ss). */
int checkpoint_fork(struct core *core, const char *owner, const char *sandbox, unsigned count,
                    bool memory, struct checkpoint *ret_c, struct sandbox **ret_ss,
                    struct err *err);

/* The same with memory, for who knows of no checkpoints: none is left. `count` is from 1 to CHECKPOINT_FORKS_MAX. */
int checkpoint_copies(struct core *core, const char *owner, const char *sandbox, unsigned count,
                      struct sandbox **ret_ss, struct err *err);

/* ---- checkpoint_promote.c ---- */
struct promotion {
    struct sandbox sandbox;       /* the one that was forked, with the fork's files */
    struct checkpoint checkpoint; /* of the fork: what it has now */
    struct checkpoint before;     /* of it: what it had, to go back */
};
/* The sandbox that `fork` was forked from has the fork's files from now on, and runs, as if just started; it
 * stays what else it was. The fork goes on, or is deleted with `end`. Before or after, never between. -EINVAL,
 * not_a_fork; -ENOENT, parent_gone. */
int checkpoint_promote(struct core *core, const char *owner, const char *fork, bool end,
                       struct promotion *ret_p, struct err *err);
void promotion_done(struct promotion *p);
