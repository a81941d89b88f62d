/* What checkpoints are for: going back, and going on in several ways. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "core/checkpoints.h"
#include "core/event.h"
#include "core/keeper.h"
#include "core/life.h"
#include "core/pause.h"
#include "core/row.h"
#include "core/spec.h"

#define LOG_MODULE "checkpoint"
#define FORK_THREADS 8

static int fill(struct core *core, const char *sandbox, const char *checkpoint, uint64_t disk_bytes,
                uint32_t flags, struct err *err)
{
    struct keeper_request q = { .version = KEEPER_VERSION, .op = KEEPER_BOX_PUT, .flags = flags };
    memcpy(q.id, sandbox, sizeof(q.id));
    memcpy(q.point, checkpoint, sizeof(q.point));
    q.limits.disk_bytes = disk_bytes;
    return keeper_ask(core, &q, NULL, err);
}

int checkpoints_fill(struct core *core, const char *sandbox, const char *checkpoint,
                     uint64_t disk_bytes, struct err *err)
{
    return fill(core, sandbox, checkpoint, disk_bytes, 0, err);
}

/* The files of a stopped one are a checkpoint's by now. As long as the record says that it is archived, they are nobody's:
 * the next start would throw them away. */
static int now_has(struct core *core, struct box *b, const char *checkpoint, struct err *err)
{
    char before[ID_SIZE];
    bool archived = b->s.spec.archived;
    (void)pthread_mutex_lock(&core->table.lock);
    memcpy(before, b->s.spec.checkpoint, ID_SIZE);
    memcpy(b->s.spec.checkpoint, checkpoint, ID_SIZE);
    b->s.spec.archived = false;
    (void)pthread_mutex_unlock(&core->table.lock);
    int r = row_save(core, &b->s, b->tree, err);
    if (r >= 0 || !archived)
        return r;
    (void)pthread_mutex_lock(&core->table.lock);
    memcpy(b->s.spec.checkpoint, before, ID_SIZE);
    b->s.spec.archived = true;
    (void)pthread_mutex_unlock(&core->table.lock);
    return r;
}

int checkpoints_restore(struct core *core, struct box *b, const struct checkpoint *c, bool memory,
                        struct err *err)
{
    if (strcmp(b->tree, c->tree) != 0)
        return err_fail(err, FAIL_INVALID_FIELD,
                        "that checkpoint lies on another image; make a new sandbox from it");
    int r = 0;
    if (memory)
        return checkpoints_rewind(core, b, c, err);
    if (b->s.state == SANDBOX_PAUSED) {
        r = pause_replace(core, b, c->id, err);
        return r < 0 ? r : sandbox_start_held(core, b, err);
    }
    uint32_t made = 0;
    if (b->s.state == SANDBOX_RUNNING) { /* it ends only for files that are there */
        made = KEEPER_BOX_MADE;
        r = fill(core, b->s.id, c->id, b->s.spec.disk_bytes, KEEPER_BOX_AHEAD, err);
        if (r >= 0)
            r = life_stop(core, b, CAUSE_STOPPED, err);
    }
    if (r < 0)
        return r;
    r = fill(core, b->s.id, c->id, b->s.spec.disk_bytes, made, err);
    if (r >= 0)
        r = now_has(core, b, c->id, err);
    /* What failed first matters; it is started again in either case. */
    int started = sandbox_start_held(core, b, r < 0 ? NULL : err);
    return r < 0 ? r : started;
}

int checkpoint_restore(struct core *core, const char *owner, const char *sandbox, const char *who,
                       bool memory, struct sandbox *ret_s, struct err *err)
{
    _cleanup_(checkpoint_done) struct checkpoint c = { 0 };
    struct archive_busy *pin = NULL;
    struct sandbox s = { 0 };
    struct box *b;
    int r = sandbox_get(core, owner, sandbox, &s, err);
    if (r >= 0)
        r = checkpoint_get(core, owner, s.id, who, &c, err);
    bool own_pause = r >= 0 && strcmp(s.spec.paused, c.id) == 0;
    sandbox_done(&s);
    if (r >= 0)
        r = checkpoints_pin(core, &c, &pin, err);
    if (r >= 0)
        r = sandbox_hold_settled(core, owner, sandbox, &b, err);
    if (r < 0) {
        checkpoints_unpin(core, pin);
        return r;
    }
    memory = memory && c.memory;
    if (memory) /* it needs the checkpoint from its first step on, and may remove it in the end */
        checkpoints_unpin(core, take_ptr(pin));
    r = checkpoints_restore(core, b, &c, memory, err);
    checkpoints_unpin(core, pin);
    r = box_release_copy(core, b, r, ret_s, err);
    if (r >= 0 && own_pause && !memory) /* it was pinned when the pause ended */
        pause_forget(core, owner, c.id);
    if (r >= 0) {
        event_emit(core, owner, ret_s->id, "sandbox.restored", NULL);
        log_info("restored sandbox=%s checkpoint=%s", ret_s->id, c.id);
    }
    return r;
}

int checkpoint_start(struct core *core, const char *owner, const char *sandbox, const char *who,
                     const char *name, bool memory, struct sandbox *ret_s, struct err *err)
{
    _cleanup_(checkpoint_done) struct checkpoint c = { 0 };
    _cleanup_(sandbox_spec_done) struct sandbox_spec spec = { 0 };
    int r = checkpoint_get(core, owner, sandbox, who, &c, err);
    if (r >= 0)
        r = spec_from_json(c.spec, &spec, err);
    if (r < 0)
        return r;
    memcpy(spec.checkpoint, c.id, ID_SIZE);
    memcpy(spec.origin, c.sandbox, ID_SIZE);
    memcpy(spec.paused, memory && c.memory ? c.id : (char[ID_SIZE]){ 0 }, ID_SIZE);
    spec.revision = 0;
    if (name && !(spec.name = strdup(name)))
        return err_set(err, ENOMEM, "out of memory");
    struct archive_busy *pin = NULL;
    r = checkpoints_pin(core, &c, &pin, err);
    if (r >= 0)
        r = sandbox_create_on(core, owner, &spec, c.tree, ret_s, err);
    checkpoints_unpin(core, pin);
    return r;
}

/* ---- several at once ---- */

struct fork {
    struct core *core;
    const char *owner;
    const struct checkpoint *c;
    struct sandbox *made;
    unsigned count;
    _Atomic unsigned next; /* which is to be made */
    pthread_mutex_t lock;
    int r; /* the first failure */
    struct err err;
};

static void *make_copies(void *arg)
{
    struct fork *f = arg;
    for (unsigned i; (i = atomic_fetch_add(&f->next, 1)) < f->count;) {
        struct err err = ERR_INIT;
        int r = checkpoint_start(f->core, f->owner, NULL, f->c->id, NULL, true, &f->made[i], &err);
        if (r >= 0)
            continue;
        f->made[i] = (struct sandbox){ 0 };
        atomic_store(&f->next, f->count); /* the others need not begin */
        (void)pthread_mutex_lock(&f->lock);
        if (f->r >= 0) {
            f->r = r;
            f->err = err;
        }
        (void)pthread_mutex_unlock(&f->lock);
    }
    return NULL;
}

static void run(struct fork *f)
{
    pthread_t threads[FORK_THREADS];
    unsigned n = 0;
    while (n + 1 < FORK_THREADS && n + 1 < f->count &&
           pthread_create(&threads[n], NULL, make_copies, f) == 0)
        n++;
    (void)make_copies(f);
    while (n > 0)
        (void)pthread_join(threads[--n], NULL);
}

static void drop_copies(struct fork *f)
{
    for (unsigned i = 0; i < f->count; i++) {
        if (f->made[i].id[0])
            (void)sandbox_delete(f->core, f->owner, f->made[i].id, NULL);
        sandbox_done(&f->made[i]);
    }
    free(f->made);
}

static int make_all(struct core *core, const char *owner, const struct checkpoint *c,
                    unsigned count, struct sandbox **ret_ss, struct err *err)
{
    struct fork f = { .core = core,
                      .owner = owner,
                      .c = c,
                      .count = count,
                      .made = calloc(count, sizeof(*f.made)),
                      .lock = PTHREAD_MUTEX_INITIALIZER };
    if (!f.made)
        return err_set(err, ENOMEM, "out of memory");
    run(&f);
    if (f.r < 0) {
        *err = f.err;
        drop_copies(&f);
        return f.r;
    }
    *ret_ss = f.made;
    return 0;
}

int checkpoint_fork(struct core *core, const char *owner, const char *sandbox, unsigned count,
                    bool memory, struct checkpoint *ret_c, struct sandbox **ret_ss, struct err *err)
{
    const struct checkpoint_ask ask = { .reason = "fork", .memory = memory };
    if (count < 1 || count > CHECKPOINT_FORKS_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "'count' must be from 1 to %d",
                        CHECKPOINT_FORKS_MAX);
    int r = checkpoint_create(core, owner, sandbox, &ask, ret_c, err);
    if (r < 0)
        return r;
    r = make_all(core, owner, ret_c, count, ret_ss, err);
    if (r < 0) {
        (void)checkpoint_remove(core, owner, NULL, ret_c->id, NULL);
        checkpoint_done(ret_c);
    }
    return r;
}

int checkpoint_copies(struct core *core, const char *owner, const char *sandbox, unsigned count,
                      struct sandbox **ret_ss, struct err *err)
{
    _cleanup_(checkpoint_done) struct checkpoint c = { 0 };
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int r = sandbox_get(core, owner, sandbox, &s, err);
    if (r < 0)
        return r;
    if (s.state == SANDBOX_PAUSED) { /* what it goes on from is there already, and stays its own */
        r = checkpoint_get(core, owner, NULL, s.spec.paused, &c, err);
        return r < 0 ? r : make_all(core, owner, &c, count, ret_ss, err);
    }
    r = checkpoint_fork(core, owner, s.id, count, true, &c, ret_ss, err);
    if (r >= 0)
        (void)checkpoint_remove(core, owner, NULL, c.id, NULL);
    else
        c = (struct checkpoint){ 0 };
    return r;
}
