#include "core/sandbox.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/count.h"
#include "core/event.h"
#include "core/keeper.h"
#include "core/life.h"
#include "core/pool.h"
#include "core/replay.h"
#include "core/row.h"
#include "core/spec.h"
#include "core/timers.h"
#include "core/version.h"

#define LOG_MODULE "sandbox"
#define HOLD_MS 10000        /* another operation on the same sandbox: longer than any stop */
#define DELETE_HOLD_MS 60000 /* a delete outwaits a create on a loaded machine */
#define ACTIVE_SAVE_MS 60000 /* how old the database's last_active_ms may be */

/* ---- create ---- */

static int add(struct core *core, struct box *b, const char *id, struct err *err)
{
    memcpy(b->s.id, id, ID_SIZE);
    return box_admit(core, b, err);
}

/* Runs, in memory; fills *ret_s. */
static int now_running(struct core *core, struct box *b, uint64_t cpu_us, struct sandbox *ret_s,
                       struct err *err)
{
    (void)pthread_mutex_lock(&core->table.lock);
    life_running(b, clock_now_ms());
    usage_begun(core, b, b->s.started_ms, cpu_us);
    int r = sandbox_copy(&b->s, ret_s);
    (void)pthread_mutex_unlock(&core->table.lock);
    return r < 0 ? err_set(err, -r, "cannot allocate a sandbox") : 0;
}

static bool boots(const struct sandbox_spec *spec)
{
    return spec->boot.argv || spec->boot.ready != READY_AT_ONCE;
}

static int boot(struct core *core, struct box *b, struct err *err)
{
    if (!boots(&b->s.spec))
        return 0;
    return err_wrap(err, boot_run(core, &b->s, true, NULL, err), "template '%s'",
                    b->s.spec.template);
}

/* Makes a cell of the pool this sandbox's. 1: it runs; 0: it would not do, and is gone. */
static int hand_out(struct core *core, struct box *b, const struct pool_cell *cell, bool booted,
                    struct sandbox *ret_s, struct err *err)
{
    struct keeper_limits limits = spec_limits(&b->s.spec);
    if (memcmp(&limits, &cell->limits, sizeof(limits)) != 0 &&
        keeper_ask_limits(core, cell->id, &limits, NULL) < 0) {
        box_remove(core, b);
        warm_pool_discard(core, cell);
        return 0;
    }
    int r = volumes_attach(core, cell->id, &b->s.spec, err);
    if (r >= 0)
        r = networks_attach(core, cell->id, b->s.spec.network, err);
    if (r >= 0 && !booted)
        r = boot(core, b, err);
    if (r >= 0)
        r = now_running(core, b, cell->cpu_us, ret_s, err);
    if (r >= 0) {
        replay_note(core, "sandbox", ret_s->id);
        r = row_add(core, ret_s, b->tree, err);
        if (r >= 0)
            return 1;
        sandbox_done(ret_s);
    }
    box_remove(core, b);
    warm_pool_discard(core, cell);
    return r;
}

/* 1: running, from one of its template's that was ready; 0: there was none. */
static int create_ready(struct core *core, struct box *b, struct sandbox *ret_s, struct err *err)
{
    struct pool_cell cell;
    const char *key = b->s.spec.template_id;
    if (!key[0] || !warm_pool_take_ready(core, key, b->tree, &cell))
        return 0;
    int r = add(core, b, cell.id, err);
    if (r < 0) {
        warm_pool_discard(core, &cell);
        return r;
    }
    return hand_out(core, b, &cell, true, ret_s, err);
}

/* 1: running, from a blank cell that was ready; 0: there was none that would do. */
static int create_warm(struct core *core, struct box *b, struct sandbox *ret_s, struct err *err)
{
    struct pool_cell cell;
    struct sandbox_spec usual;
    sandbox_spec_init(&usual);
    /* A blank cell has the usual shared memory (half its memory): too much for a smaller one. */
    if (b->s.spec.memory_bytes < usual.memory_bytes || !warm_pool_take(core, b->tree, &cell))
        return 0;
    int r = add(core, b, cell.id, err);
    if (r < 0) {
        warm_pool_give_back(core, &cell);
        return r;
    }
    return hand_out(core, b, &cell, false, ret_s, err);
}

static int create_cold(struct core *core, struct box *b, struct sandbox *ret_s, struct err *err)
{
    char id[ID_SIZE];
    int r = id_random(id);
    if (r < 0)
        return err_set(err, -r, "cannot make an id");
    r = add(core, b, id, err);
    if (r < 0)
        return r;
    replay_note(core, "sandbox", id);
    r = row_add(core, &b->s, b->tree, err);
    if (r < 0) {
        box_remove(core, b);
        return r;
    }
    struct keeper_limits limits = spec_limits(&b->s.spec);
    /* From here on the table keeps the tree; before, its image may have been removed. */
    r = image_tree_known(core, b->tree) ? keeper_ask_make(core, id, b->tree, &limits, err)
                                        : err_name(err, ENOENT, "image_not_found",
                                                   "image '%s' was just removed", b->s.spec.image);
    if (r >= 0)
        r = volumes_attach(core, id, &b->s.spec, err);
    if (r >= 0)
        r = networks_attach(core, id, b->s.spec.network, err);
    if (r >= 0)
        r = boot(core, b, err);
    if (r >= 0)
        r = now_running(core, b, 0, ret_s, err);
    if (r >= 0) {
        r = row_mark(core, ret_s, err);
        if (r < 0)
            sandbox_done(ret_s);
    }
    if (r < 0)
        (void)life_delete(core, b, CAUSE_FAILED, NULL); /* the timers go on if this fails */
    return r;
}

/* The image, and what its configuration says of things the client left open. */
static int take_image(struct core *core, const char *owner, const struct sandbox_spec *asked,
                      struct sandbox_spec *spec, struct image *ret_image, struct err *err)
{
    struct image_config config;
    const char *whose = asked->image_owner[0] ? asked->image_owner : owner;
    int r = image_resolve(core, whose, spec->image, ret_image, &config, err);
    if (r < 0)
        return r;
    r = spec_take_image(asked, &config, spec);
    image_config_done(&config);
    return r < 0 ? err_set(err, -r, "cannot copy an image's configuration") : 0;
}

static int create(struct core *core, const char *owner, const struct sandbox_spec *asked,
                  struct sandbox_spec *spec, struct sandbox *ret_s, struct err *err)
{
    struct image image;
    int r = spec_check(spec, err);
    if (r < 0)
        return r;
    r = take_image(core, owner, asked, spec, &image, err);
    if (r < 0)
        return r;
    struct box *b = box_new(owner, spec, image.tree);
    if (!b)
        return err_set(err, ENOMEM, "cannot allocate a sandbox");
    b->s.state = SANDBOX_CREATING;
    b->s.created_ms = clock_now_ms();
    b->removed = true; /* until it is added */
    r = create_ready(core, b, ret_s, err);
    if (r == 0)
        r = create_warm(core, b, ret_s, err);
    if (r > 0)
        atomic_fetch_add(&core->warm_creates, 1);
    if (r == 0)
        r = create_cold(core, b, ret_s, err);
    box_release(core, b);
    return r;
}

int sandbox_create(struct core *core, const char *owner, const struct sandbox_spec *spec,
                   struct sandbox *ret_s, struct err *err)
{
    int64_t began = clock_mono_us();
    struct sandbox_spec want;
    int r = strlen(owner) < OWNER_MAX ? spec_complete(spec, &want) : -EINVAL;
    if (r < 0)
        return err_set(err, -r, "cannot copy a spec");
    r = create(core, owner, spec, &want, ret_s, err);
    sandbox_spec_done(&want);
    if (r < 0) {
        atomic_fetch_add(&core->create_failures, 1);
        return r;
    }
    atomic_fetch_add(&core->creates, 1);
    if (ret_s->expires_ms || ret_s->spec.idle_timeout_ms)
        timers_changed(core);
    char data[256];
    const char *name = ret_s->spec.name;
    int n = snprintf(data, sizeof(data), "{\"image\":\"%s\",\"name\":%s%s%s}", ret_s->spec.image,
                     name ? "\"" : "", name ? name : "null", name ? "\"" : "");
    event_emit(core, owner, ret_s->id, "sandbox.created",
               n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
    log_info("created sandbox=%s image=%s warm=%s took_us=%lld", ret_s->id, ret_s->spec.image,
             r > 0 ? "yes" : "no", (long long)(clock_mono_us() - began));
    return 0;
}

/* ---- reading ---- */

int sandbox_get(struct core *core, const char *owner, const char *who, struct sandbox *ret_s,
                struct err *err)
{
    struct table *t = &core->table;
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, owner, who);
    int r = b ? sandbox_copy(&b->s, ret_s) : -ENOENT;
    (void)pthread_mutex_unlock(&t->lock);
    if (r == -ENOENT)
        return row_missing(core, owner, who, ret_s, err);
    return r < 0 ? err_set(err, -r, "cannot copy a sandbox") : 0;
}

static int not_running(struct err *err, const char *who, enum sandbox_state state)
{
    return err_name(err, ESRCH, "sandbox_not_running", "sandbox '%.64s' is %s%s", who,
                    sandbox_state_name(state),
                    state == SANDBOX_STOPPED ? "; `warren start` runs it again" : "");
}

int sandbox_enter(struct core *core, const char *owner, const char *who, struct sandbox *ret_s,
                  struct err *err)
{
    struct table *t = &core->table;
    enum sandbox_state state = SANDBOX_GONE;
    int64_t now = clock_now_ms();
    int r = -ENOENT;
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, owner, who);
    if (b) {
        state = b->s.state;
        r = state == SANDBOX_RUNNING ? sandbox_copy(&b->s, ret_s) : -ESRCH;
    }
    if (r >= 0) {
        b->inside++;
        b->s.last_active_ms = ret_s->last_active_ms = now;
    }
    (void)pthread_mutex_unlock(&t->lock);
    if (r == -ENOENT)
        return row_missing(core, owner, who, NULL, err);
    if (r == -ESRCH)
        return not_running(err, who, state);
    return r < 0 ? err_set(err, -r, "cannot copy a sandbox") : 0;
}

void sandbox_leave(struct core *core, const char *id)
{
    struct table *t = &core->table;
    int64_t now = clock_now_ms();
    bool save = false;
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, NULL, id);
    if (b && b->inside > 0) {
        b->inside--;
        b->s.last_active_ms = now;
        save = now - b->saved_active_ms >= ACTIVE_SAVE_MS;
        if (save)
            b->saved_active_ms = now;
    }
    (void)pthread_mutex_unlock(&t->lock);
    if (save)
        (void)store_sandbox_active(core->store, id, now, NULL);
}

int sandbox_usage(struct core *core, const char *owner, const char *who,
                  struct keeper_usage *ret_usage, struct err *err)
{
    struct table *t = &core->table;
    char id[ID_SIZE] = "";
    enum sandbox_state state = SANDBOX_GONE;
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, owner, who);
    if (b) {
        memcpy(id, b->s.id, ID_SIZE);
        state = b->s.state;
    }
    (void)pthread_mutex_unlock(&t->lock);
    if (!id[0])
        return row_missing(core, owner, who, NULL, err);
    if (state != SANDBOX_RUNNING && state != SANDBOX_STOPPED)
        return not_running(err, who, state);
    int r = keeper_ask_stat(core, id, ret_usage, err);
    /* The keeper knows no more of a stopped one than it must; that is not the caller's fault. */
    return r == -ENOENT ? not_running(err, who, state) : r;
}

void sandbox_note_oom(struct core *core, const char *id)
{
    struct table *t = &core->table;
    char owner[OWNER_MAX] = "";
    (void)pthread_mutex_lock(&t->lock);
    struct box *b = box_find(t, NULL, id);
    if (b)
        memcpy(owner, b->s.owner, sizeof(owner));
    (void)pthread_mutex_unlock(&t->lock);
    if (!b)
        return;
    atomic_fetch_add(&core->ooms, 1);
    event_emit(core, owner, id, "sandbox.oom", NULL);
}

/* ---- changing ---- */

static int hold(struct core *core, const char *owner, const char *who, int wait_ms,
                struct box **ret_b, struct err *err)
{
    int r = box_hold(core, owner, who, wait_ms, ret_b);
    if (r == -ENOENT)
        return row_missing(core, owner, who, NULL, err);
    if (r == -EBUSY)
        return err_name(err, EBUSY, "sandbox_busy",
                        "sandbox '%.64s' is still busy with another operation; try again", who);
    return r;
}

static int deleting(struct err *err, const char *who)
{
    return err_name(err, EBUSY, "sandbox_busy", "sandbox '%.64s' is being deleted", who);
}

static int copy_held(struct core *core, struct box *b, struct sandbox *ret_s, struct err *err)
{
    (void)pthread_mutex_lock(&core->table.lock);
    int r = sandbox_copy(&b->s, ret_s);
    (void)pthread_mutex_unlock(&core->table.lock);
    return r < 0 ? err_set(err, -r, "cannot copy a sandbox") : 0;
}

int sandbox_stop_if(struct core *core, const char *owner, const char *who, const char *versions,
                    struct sandbox *ret_s, struct err *err)
{
    struct box *b;
    int r = hold(core, owner, who, HOLD_MS, &b, err);
    if (r < 0)
        return r;
    r = version_check(core, b, versions, err);
    if (r >= 0 && b->s.state == SANDBOX_DELETING)
        r = deleting(err, who);
    else if (r >= 0 && b->s.state == SANDBOX_RUNNING)
        r = life_stop(core, b, CAUSE_STOPPED, err);
    if (r >= 0)
        r = copy_held(core, b, ret_s, err);
    box_release(core, b);
    return r;
}

static int start_held(struct core *core, struct box *b, struct err *err)
{
    int r = box_starting(core, b, err);
    if (r < 0)
        return r;
    r = life_start(core, b, err);
    box_started(core, b);
    return r < 0 ? r : boot(core, b, err); /* one that does not get ready runs nevertheless */
}

int sandbox_start_if(struct core *core, const char *owner, const char *who, const char *versions,
                     struct sandbox *ret_s, struct err *err)
{
    struct box *b;
    int r = hold(core, owner, who, HOLD_MS, &b, err);
    if (r < 0)
        return r;
    r = version_check(core, b, versions, err);
    if (r >= 0 && b->s.state == SANDBOX_DELETING)
        r = deleting(err, who);
    else if (r >= 0 && b->s.state == SANDBOX_STOPPED)
        r = start_held(core, b, err);
    if (r >= 0)
        r = copy_held(core, b, ret_s, err);
    box_release(core, b);
    return r;
}

int sandbox_delete_if(struct core *core, const char *owner, const char *who, const char *versions,
                      struct err *err)
{
    struct box *b;
    int r = hold(core, owner, who, DELETE_HOLD_MS, &b, err);
    if (r < 0)
        return r;
    r = version_check(core, b, versions, err);
    if (r >= 0)
        r = life_delete(core, b, CAUSE_DELETED, err);
    box_release(core, b);
    return r;
}
