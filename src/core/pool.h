/* pool - cells kept running, so that a create finds its sandbox made, and the memory of such, to be copied.
 *
 * Blank ones are of the image that was asked for last and have the default limits; a template's
 * have its limits, were booted and are ready. They are in no database and no list until one is
 * handed out. Some of the blank ones are made for a network (steered), as many as were asked for of late.
 * One thread makes blank ones and removes all, after the requests: it waits for a quiet
 * moment, unless the pool is running low. Another makes templates', which may take long. What a crash leaves
 * behind is unknown to the database and removed at the next start. */
#pragma once
#include "core/private.h"

int warm_pool_start(struct core *core, unsigned size, struct err *err);
void warm_pool_stop(struct core *core); /* removes the cells if the keeper is there */

/* Notes that `tree` is asked for; true and a running cell that is now the caller's. Only one that is
 * to have a network may be given one that is steered. */
bool warm_pool_take(struct core *core, const char *tree, bool network, struct pool_cell *ret_cell);
void warm_pool_give_back(struct core *core, const struct pool_cell *cell); /* unused, blank */
void warm_pool_discard(struct core *core, const struct pool_cell *cell);
/* `tree` takes the place of `old` (may be NULL) under its name. */
void warm_pool_replace(struct core *core, const char *old, const char *tree);
/* Drops all cells of `tree` and waits until the last one is removed. */
void warm_pool_forget(struct core *core, const char *tree);
/* Its init died; false: not a cell of the pool. */
bool warm_pool_died(struct core *core, const char *id);
unsigned warm_pool_ready(struct core *core);
/* The ids of the ready ones; free(*ret_ids). */
int warm_pool_ids(struct core *core, char (**ret_ids)[ID_SIZE], size_t *ret_n);

/* ---- templates' (shelf.c) ---- */

/* Makes one that is in no list, waits until it is ready, and removes it: would they come up? */
int warm_pool_try(struct core *core, const char *owner, const struct sandbox_spec *asked,
                  const _Atomic bool *cancel, struct err *err);
/* Keep n of them ready, from now on. Copies the spec. */
int warm_pool_stock(struct core *core, const char *key, const char *owner,
                    const struct sandbox_spec *spec, unsigned n, struct err *err);
/* One, but only for a while after each use (which says nothing to those of warm_pool_stock): few of
 * a team and of all, those used last. */
int warm_pool_stock_by_use(struct core *core, const char *key, const char *owner,
                           const struct sandbox_spec *spec, struct err *err);
void warm_pool_use(struct core *core, const char *key);
void warm_pool_unstock(struct core *core, const char *key);
/* One with exactly these limits. */
bool warm_pool_take_ready(struct core *core, const char *key, const char *tree,
                          const struct keeper_limits *limits, struct pool_cell *ret_cell);
/* How many are ready. *ret_kept (NULL is fine): its memory is kept, too. */
unsigned warm_pool_stocked(struct core *core, const char *key, bool *ret_kept);

/* ---- their memory (shelf_memory.c; template_memory.h) ---- */

/* The checkpoint that a create with these limits may be a copy of; false: none. */
bool warm_pool_memory(struct core *core, const char *key, const char *tree,
                      const struct keeper_limits *limits, char ret_point[ID_SIZE]);
/* How that went: r below zero, with err, or 0. One that cannot be copied is made anew. */
void warm_pool_copied(struct core *core, const char *key, const char *point, int r,
                      const struct err *err);
/* One with these limits was booted: the next may be a copy. */
void warm_pool_want_memory(struct core *core, const char *key, const struct keeper_limits *limits);

/* Between pool.c and shelf.c; the lock is held. */
int shelves_start(struct core *core, struct err *err);
void shelves_stop(struct core *core); /* joins the thread; not with the lock held */
void pool_trash(struct pool *p, const struct pool_cell *cell);
void pool_trash_ready(struct pool *p, struct shelf *s, unsigned i);
struct shelf *shelf_find(struct pool *p, const char *key);
bool shelf_has_room(const struct shelf *s); /* for one more that is ready */

/* Between shelf.c and shelf_memory.c. The lock is held, and let go of while something is made. */
struct shelf_work { /* what is made for a shelf */
    struct sandbox s;
    struct sandbox_spec asked;
    struct pool_cell cell;
    char point[ID_SIZE]; /* whose copy; "": it is booted */
};
int shelf_work_begin(struct core *core, const struct shelf *s, struct shelf_work *w,
                     struct err *err); /* the lock is let go of, also on failure */
int shelf_work_boot(struct core *core, struct shelf_work *w, struct err *err);
struct shelf *shelf_work_end(struct core *core, struct shelf_work *w); /* NULL: nobody wants it */
int64_t shelf_retry(unsigned failures);                                /* when, after so many */

/* The shelf whose memory is to be looked for or made, as `neediest`; *ret_at is left, or made earlier. */
struct shelf *shelf_memory_neediest(struct pool *p, int64_t now, int64_t *ret_at);
void shelf_memory_fill(struct core *core, const struct shelf *s);
void shelf_memory_drop(struct pool *p, struct shelf *s); /* it is of another image, or goes */
void shelf_memory_shed(struct core *core);               /* removes what was dropped */
