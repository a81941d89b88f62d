/* A fork's files become those of the sandbox that it was forked from. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "core/checkpoints.h"
#include "core/event.h"
#include "core/life.h"
#include "core/table.h"

#define LOG_MODULE "checkpoint"

static const struct checkpoint_ask promote_ask = { .reason = "promote" };

void promotion_done(struct promotion *p)
{
    sandbox_done(&p->sandbox);
    checkpoint_done(&p->checkpoint);
    checkpoint_done(&p->before);
}

/* The ids of both; a sandbox that was restored to another's checkpoint is no fork of it. */
static int find_parent(struct core *core, const char *owner, const char *fork,
                       char ret_fork[ID_SIZE], char ret_parent[ID_SIZE], struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int r = sandbox_get(core, owner, fork, &s, err);
    if (r < 0)
        return r;
    if (!s.spec.origin[0])
        return err_fail(err, FAIL_NOT_A_FORK, "sandbox '%.64s' was not forked from another", fork);
    memcpy(ret_fork, s.id, ID_SIZE);
    memcpy(ret_parent, s.spec.origin, ID_SIZE);
    (void)pthread_mutex_lock(&core->table.lock);
    bool there = box_find(&core->table, owner, ret_parent) != NULL;
    (void)pthread_mutex_unlock(&core->table.lock);
    return there ? 0
                 : err_fail(
                       err, FAIL_PARENT_GONE,
                       "the sandbox that '%.64s' was forked from is gone; it has the files itself",
                       fork);
}

static int swap(struct core *core, struct box *b, struct promotion *p, struct err *err)
{
    if (strcmp(b->tree, p->checkpoint.tree) != 0)
        return err_fail(err, FAIL_DIFFERENT_IMAGES, "both lie on different images");
    if (b->s.spec.archived)
        return err_fail(err, FAIL_SANDBOX_ARCHIVED,
                        "sandbox '%s', which it was forked from, is archived; start it first",
                        b->s.id);
    /* Ends what runs first: what it writes until then is in the checkpoint that undoes all this. One that is paused
     * stays so until it has the files. */
    bool ran = b->s.state == SANDBOX_RUNNING;
    int r = ran ? life_stop(core, b, CAUSE_STOPPED, err) : 0;
    if (r < 0)
        return r;
    r = checkpoints_create(core, b, &promote_ask, &p->before, err);
    if (r >= 0)
        return checkpoints_restore(core, b, &p->checkpoint, false, err);
    if (ran && sandbox_start_held(core, b, NULL) < 0)
        log_warn("not started again after a failure sandbox=%s", b->s.id);
    return r;
}

static int swap_parent(struct core *core, const char *owner, const char *parent,
                       struct promotion *p, struct err *err)
{
    struct box *b;
    int r = sandbox_hold_settled(core, owner, parent, &b, err);
    if (r < 0)
        return r;
    r = swap(core, b, p, err);
    if (r >= 0) {
        (void)pthread_mutex_lock(&core->table.lock);
        r = sandbox_copy(&b->s, &p->sandbox);
        (void)pthread_mutex_unlock(&core->table.lock);
    }
    /* A failure may come after the step that counts: what it has is what its record says. */
    bool there = strcmp(b->s.spec.checkpoint, p->checkpoint.id) == 0;
    box_release(core, b);
    if (r < 0 && !there && p->before.id[0])
        (void)checkpoint_remove(core, owner, NULL, p->before.id, NULL);
    if (r < 0 && !there)
        (void)checkpoint_remove(core, owner, NULL, p->checkpoint.id, NULL);
    return r;
}

int checkpoint_promote(struct core *core, const char *owner, const char *fork, bool end,
                       struct promotion *ret_p, struct err *err)
{
    struct promotion p = { 0 };
    char from[ID_SIZE], to[ID_SIZE];
    int r = find_parent(core, owner, fork, from, to, err);
    if (r >= 0)
        r = checkpoint_create(core, owner, from, &promote_ask, &p.checkpoint, err);
    if (r >= 0)
        r = swap_parent(core, owner, to, &p, err);
    if (r < 0) {
        promotion_done(&p);
        return r;
    }
    event_emit(core, owner, to, "sandbox.promoted", NULL);
    log_info("promoted sandbox=%s from=%s checkpoint=%s", to, from, p.checkpoint.id);
    if (end)
        r = sandbox_delete(core, owner, from, err);
    if (r < 0)
        promotion_done(&p);
    else
        *ret_p = p;
    return r;
}
