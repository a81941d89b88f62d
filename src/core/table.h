/* table - the sandboxes in memory, by id, by (owner, name) and in order of creation.
 *
 * A box is one sandbox. Whoever changes it for longer than a moment holds it (box_hold ..
 * box_release); its state is then the holder's to change, under the table's lock, and the holder
 * alone may read `s.spec`, `s.state` and `tree` without it. Requests that are merely inside
 * (sandbox_enter) are counted, not held. Nothing here blocks but box_hold. */
#pragma once
#include "core/frost.h"
#include "core/lease.h"
#include "core/private.h"
#include "core/samples.h"
#include "core/uses.h"

struct box {
    struct sandbox s;
    char tree[KEEPER_IMAGE_SIZE];
    bool busy;               /* somebody holds it */
    bool removed;            /* no longer in the table; freed by the last one that knows it */
    unsigned waiting;        /* for `freed` */
    unsigned inside;         /* requests at work in it */
    unsigned life;           /* counts its starts: a death is of one of them */
    bool starting;           /* stopped, and counted as running: a start is on its way */
    bool unsure;             /* a resume was cut: it may run, and its files may have changed */
    bool at_broker;          /* the broker was given its network */
    bool queued;             /* a job about it is on its way (timers.c) */
    int64_t retry_ms;        /* a failed end is tried again at this moment */
    int64_t restart_ms;      /* when it is started again (restart.h); 0: not */
    unsigned restarts;       /* starts by restart.h in a row */
    int64_t saved_active_ms; /* the last_active_ms that the database has */
    int64_t idle_next_ms;    /* when to look whether it is idle */
    int64_t quiet_ms;        /* its inside was last seen at work at this moment */
    int64_t cpu_seen_ms;     /* 0: never looked */
    uint64_t cpu_seen_us;
    struct lease *leases; /* lease.h */
    size_t n_leases;
    enum frost frost;     /* frost.h */
    int64_t save_next_ms; /* when an automatic checkpoint is due (autosave.h); 0: never */
    uint64_t save_cpu_us; /* its cpu time at the last one; 0: not known */
    struct meter meter;   /* usage.c */
    struct samples samples;
    struct uses uses;
    uint64_t rx_bytes, tx_bytes; /* that its network carried, ever */
    uint64_t account_bytes;      /* that the account of its network takes on disk */
    uint16_t *ports; /* that were seen to listen in the life `ports_life` of it (portwatch.c) */
    size_t n_ports;
    unsigned ports_life;
    pthread_cond_t freed;
    struct box *next_id, *next_name;
};

int table_init(struct table *t);
void table_done(struct table *t); /* frees the boxes */

/* Takes spec's contents. The box is busy, held by the caller, and not in the table yet. */
struct box *box_new(const char *owner, struct sandbox_spec *spec, const char *tree);
void box_free(struct box *b); /* only one that is not in the table */

/* -EEXIST when another live sandbox of the owner has the name; -ENOMEM. */
int box_add(struct core *core, struct box *b);
/* The same for a new one, if its team's quotas allow it; the failure is in err. */
int box_admit(struct core *core, struct box *b, struct err *err);
void box_remove(struct core *core, struct box *b); /* held by the caller, and still after it */
/* Swaps the spec for *spec; the caller then has the old one. -EEXIST, name_taken; with `admit`
 * also what the team's quotas say. */
int box_swap_spec(struct core *core, struct box *b, struct sandbox_spec *spec, bool admit,
                  struct err *err);
/* Counts a stopped one as running, if the quotas allow it, until box_started. */
int box_starting(struct core *core, struct box *b, struct err *err);
void box_started(struct core *core, struct box *b);

/* -ENOENT; -EBUSY when another operation still held it after wait_ms. */
int box_hold(struct core *core, const char *owner, const char *who, int wait_ms,
             struct box **ret_b);
void box_release(struct core *core, struct box *b);
/* What it is now, for who holds it and answers; the caller's to sandbox_done. */
int box_copy(struct core *core, const struct box *b, struct sandbox *ret_s, struct err *err);
/* The last of an operation on it, of which r came: box_copy if that was well, and box_release. */
int box_release_copy(struct core *core, struct box *b, int r, struct sandbox *ret_s,
                     struct err *err);

/* With the table's lock held: */
struct box *box_find(struct table *t, const char *owner, const char *who); /* owner NULL: any */
/* The place in `sorted` of the first that comes after (created_ms, id). */
size_t box_after(struct table *t, int64_t created_ms, const char *id);

bool box_tree_used(struct core *core, const char *tree);
/* The same of those only that were made from the image of that name. */
bool box_image_used(struct core *core, const struct image *image);
int sandbox_copy(const struct sandbox *from, struct sandbox *ret_to); /* -ENOMEM */
