/* A new sandbox: of a template's that is ready, as a copy of what its template keeps, of a blank cell that is warm, or of a
 * cell of its own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/count.h"
#include "core/disk.h"
#include "core/event.h"
#include "core/grant.h"
#include "core/keeper.h"
#include "core/life.h"
#include "core/pool.h"
#include "core/replay.h"
#include "core/row.h"
#include "core/sandbox.h"
#include "core/spec.h"
#include "core/template_memory.h"
#include "core/timers.h"

#define LOG_MODULE "sandbox"

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
    life_running(core, b, clock_now_ms());
    usage_begun(core, b, b->s.started_ms, cpu_us);
    int r = sandbox_copy(&b->s, ret_s);
    (void)pthread_mutex_unlock(&core->table.lock);
    return r < 0 ? err_set(err, -r, "cannot allocate a sandbox") : 0;
}

/* 1: a cell with the processes of the checkpoint that its spec names; 0: it has none. */
static int make_cell(struct core *core, struct box *b, struct err *err)
{
    bool memory = b->s.spec.paused[0];
    int r = keeper_ask_make_sandbox(core, &b->s, b->tree, b->s.spec.paused, err);
    return r < 0 ? r : memory;
}

int sandbox_boot(struct core *core, struct box *b, struct err *err)
{
    if (!boot_any(&b->s.spec.boot))
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
    struct pool_cell used = *cell;
    int r = volumes_attach(core, cell->id, &b->s.spec, err);
    if (r >= 0 && used.steered) {
        used.steered = false; /* its sockets are taken there */
        r = networks_attach_made(core, &b->s, used.steer, err);
    } else if (r >= 0) {
        r = networks_attach(core, &b->s, err);
    }
    if (r >= 0 && !booted)
        r = sandbox_boot(core, b, err);
    if (r >= 0)
        r = now_running(core, b, cell->cpu_us, ret_s, err);
    if (r >= 0) {
        replay_note(core, "sandbox", ret_s->id);
        r = row_add(core, ret_s, b->tree, err);
        if (r >= 0)
            return 1;
        sandbox_done(ret_s);
    }
    networks_detach(core, b->s.id);
    box_remove(core, b);
    warm_pool_discard(core, &used);
    return r;
}

/* 1: running, from one of its template's that was ready; 0: there was none. */
static int create_ready(struct core *core, struct box *b, struct sandbox *ret_s, struct err *err)
{
    struct pool_cell cell;
    struct keeper_limits limits = spec_limits(&b->s.spec);
    const char *key = b->s.spec.template_id;
    if (!key[0] || b->s.spec.n_mounts > 1 ||
        !warm_pool_take_ready(core, key, b->tree, &limits, &cell))
        return 0;
    int r = add(core, b, cell.id, err);
    if (r < 0) {
        warm_pool_discard(core, &cell);
        return r;
    }
    return hand_out(core, b, &cell, true, ret_s, err);
}

/* 1: running, a copy of what its template keeps; 0: there is nothing, or it cannot be copied. */
static int create_copy(struct core *core, struct box *b, struct sandbox *ret_s, struct err *err)
{
    struct pool_cell cell = { .limits = spec_limits(&b->s.spec) };
    struct err why = ERR_INIT;
    char point[ID_SIZE];
    const char *key = b->s.spec.template_id;
    /* As with blank cells: one that sees several volumes has a filter that this one lacks. */
    if (!key[0] || b->s.spec.n_mounts > 1 ||
        !warm_pool_memory(core, key, b->tree, &cell.limits, point))
        return 0;
    if (id_random(cell.id) < 0)
        return err_set(err, EIO, "cannot make an id");
    memcpy(cell.tree, b->tree, sizeof(cell.tree));
    int r = add(core, b, cell.id, err);
    if (r < 0)
        return r;
    r = template_memory_copy(core, &b->s, b->tree, point, &why);
    warm_pool_copied(core, key, point, r, &why);
    struct keeper_usage usage;
    if (r >= 0 && keeper_ask_stat(core, cell.id, &usage, NULL) >= 0)
        cell.cpu_us = usage.cpu_us;
    if (r >= 0)
        return hand_out(core, b, &cell, true, ret_s, err);
    box_remove(core, b);
    warm_pool_discard(core, &cell);
    return 0;
}

/* 1: running, from a blank cell that was ready; 0: there was none that would do. */
static int create_warm(struct core *core, struct box *b, struct sandbox *ret_s, struct err *err)
{
    struct pool_cell cell;
    struct sandbox_spec usual;
    sandbox_spec_init(&usual);
    /* A blank cell has the usual shared memory (half its memory): too much for a smaller one. It lacks the filter of one that
     * sees several volumes. */
    bool network = core->broker_fd >= 0 && networks_has(&b->s.spec);
    if (b->s.spec.memory_bytes < usual.memory_bytes || b->s.spec.n_mounts > 1 ||
        !warm_pool_take(core, b->tree, network, &cell))
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
    /* From here on the table keeps the tree; before, its image may have been removed. */
    r = image_tree_known(core, b->tree)
            ? 0
            : err_fail(err, FAIL_IMAGE_NOT_FOUND, "image '%s' was just removed", b->s.spec.image);
    if (r >= 0 && b->s.spec.checkpoint[0])
        r = checkpoints_fill(core, id, b->s.spec.checkpoint, b->s.spec.disk_bytes, err);
    if (r >= 0)
        r = make_cell(core, b, err);
    bool woken = r > 0; /* its processes run already */
    if (r >= 0)
        r = volumes_attach(core, id, &b->s.spec, err);
    if (r >= 0)
        r = networks_attach(core, &b->s, err);
    if (r >= 0 && !woken)
        r = sandbox_boot(core, b, err);
    if (r >= 0) {
        (void)pthread_mutex_lock(&core->table.lock);
        b->s.spec.paused[0] = '\0';
        (void)pthread_mutex_unlock(&core->table.lock);
        r = now_running(core, b, 0, ret_s, err);
    }
    if (r >= 0) {
        r = woken ? row_save(core, ret_s, b->tree, err) : row_mark(core, ret_s, err);
        if (r < 0)
            sandbox_done(ret_s);
    }
    if (r < 0) {
        (void)pthread_mutex_lock(&core->table.lock);
        b->s.spec.paused[0] = '\0'; /* it was not its own */
        (void)pthread_mutex_unlock(&core->table.lock);
        (void)life_delete(core, b, CAUSE_FAILED, NULL); /* the timers go on if this fails */
    }
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

/* tree NULL: the image's; else what a checkpoint lies on. */
static int create(struct core *core, const char *owner, const struct sandbox_spec *asked,
                  const char *tree, struct sandbox_spec *spec, struct sandbox *ret_s,
                  struct err *err)
{
    struct image image;
    int r = spec_check(spec, err);
    if (r >= 0)
        r = disk_admit(core, err);
    if (r >= 0)
        r = limits_check(&spec->network_limits, &core->limits_most, err);
    if (r >= 0 && !tree) /* what a checkpoint kept comes back although a secret is gone */
        r = grant_check(core, owner, spec->bindings, err);
    if (r >= 0 && !tree)
        r = take_image(core, owner, asked, spec, &image, err);
    if (r < 0)
        return r;
    struct box *b = box_new(owner, spec, tree ? tree : image.tree);
    if (!b)
        return err_set(err, ENOMEM, "cannot allocate a sandbox");
    b->s.state = SANDBOX_CREATING;
    b->s.created_ms = clock_now_ms();
    b->removed = true; /* until it is added */
    r = tree ? 0 : create_ready(core, b, ret_s, err);
    if (r == 0 && !tree)
        r = create_copy(core, b, ret_s, err);
    bool booted = r == 0;
    if (r == 0 && !tree)
        r = create_warm(core, b, ret_s, err);
    if (r > 0)
        atomic_fetch_add(&core->warm_creates, 1);
    if (r == 0)
        r = create_cold(core, b, ret_s, err);
    if (r >= 0 && booted && b->s.spec.template_id[0] && b->s.spec.n_mounts <= 1) {
        struct keeper_limits limits = spec_limits(&b->s.spec);
        warm_pool_want_memory(core, b->s.spec.template_id, &limits);
    }
    box_release(core, b);
    return r;
}

int sandbox_create(struct core *core, const char *owner, const struct sandbox_spec *spec,
                   struct sandbox *ret_s, struct err *err)
{
    return sandbox_create_on(core, owner, spec, NULL, ret_s, err);
}

int sandbox_create_on(struct core *core, const char *owner, const struct sandbox_spec *spec,
                      const char *tree, struct sandbox *ret_s, struct err *err)
{
    int64_t began = clock_mono_us();
    struct sandbox_spec want;
    int r = strlen(owner) < OWNER_MAX ? spec_complete(spec, &want) : -EINVAL;
    if (r < 0)
        return err_set(err, -r, "cannot copy a spec");
    r = create(core, owner, spec, tree, &want, ret_s, err);
    sandbox_spec_done(&want);
    if (r < 0) {
        atomic_fetch_add(&core->create_failures, 1);
        return r;
    }
    atomic_fetch_add(&core->creates, 1);
    if (ret_s->expires_ms || ret_s->spec.idle_timeout_ms || ret_s->spec.freeze_after_ms ||
        ret_s->spec.autosave.every_ms)
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
