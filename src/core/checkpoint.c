#include "core/checkpoint.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/checkpoints.h"
#include "core/disk.h"
#include "core/event.h"
#include "core/keeper.h"
#include "core/pause.h"
#include "core/quota.h"
#include "core/spec.h"
#include "core/table.h"

#define LOG_MODULE "checkpoint"

/* ---- making one ---- */

void checkpoints_tell(struct core *core, const struct checkpoint *c, const char *type)
{
    char data[NAME_MAX_LEN + 2 * ID_SIZE + 64];
    int n = snprintf(data, sizeof(data), "{\"id\":\"%s\",\"name\":\"%s\"}", c->id, c->name);
    event_emit(core, c->owner, c->sandbox, type, n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
    log_info("%s checkpoint=%s sandbox=%s frozen_us=%llu", type, c->id, c->sandbox,
             (unsigned long long)c->frozen_us);
}

static int check(const struct checkpoint_ask *ask, struct err *err)
{
    if (ask->name && (!name_valid(ask->name) || id_valid(ask->name)))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'name' must be at most %d letters, digits, '.', '_' or '-', a letter or "
                        "digit first, and not have the shape of an id",
                        NAME_MAX_LEN);
    if (ask->comment && strlen(ask->comment) > CHECKPOINT_COMMENT_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "'comment' must have at most %d bytes",
                        CHECKPOINT_COMMENT_MAX);
    return 0;
}

/* What is known of it before its files are there; the box is held. */
static int describe(const struct box *b, const struct checkpoint_ask *ask, const char *id,
                    struct checkpoint *c)
{
    memcpy(c->id, id, ID_SIZE);
    memcpy(c->sandbox, b->s.id, ID_SIZE);
    memcpy(c->parent, b->s.spec.checkpoint, ID_SIZE);
    memcpy(c->owner, b->s.owner, sizeof(c->owner));
    memcpy(c->tree, b->tree, sizeof(c->tree));
    (void)snprintf(c->name, sizeof(c->name), "%s", ask->name ? ask->name : "");
    (void)snprintf(c->reason, sizeof(c->reason), "%s", ask->reason);
    c->created_ms = clock_now_ms();
    c->comment = strdup(ask->comment ? ask->comment : "");
    c->spec = spec_to_json(&b->s.spec, false);
    if (!c->comment || !c->spec)
        return -ENOMEM;
    return ask->metadata ? pairs_copy(ask->metadata, &c->metadata) : 0;
}

static int ask_keeper(struct core *core, const struct checkpoint_ask *ask, const char *cell,
                      struct checkpoint *c, struct keeper_usage *ret_last, struct err *err)
{
    struct keeper_request q = { .version = KEEPER_VERSION, .op = KEEPER_POINT_PUT };
    struct keeper_reply reply;
    struct keeper_usage usage = { 0 };
    memcpy(q.id, cell, sizeof(q.id));
    memcpy(q.point, c->id, sizeof(q.point));
    q.flags = (ask->memory ? KEEPER_POINT_MEMORY : 0u) | (ask->end ? KEEPER_POINT_END : 0u);
    int r = keeper_ask(core, &q, &reply, err);
    if (r < 0)
        return r;
    c->frozen_us = reply.frozen_us;
    c->memory = ask->memory;
    c->memory_bytes = ask->memory ? reply.memory_bytes : 0;
    if (ret_last)
        *ret_last = reply.usage;
    if (keeper_ask_stat(core, cell, &usage, NULL) >= 0)
        c->bytes = usage.disk_bytes;
    return 0;
}

/* The sandbox goes on from here. A record that fails to say so makes the next one a sibling. */
static void move_head(struct core *core, struct box *b, const char *id)
{
    struct err err = ERR_INIT;
    (void)pthread_mutex_lock(&core->table.lock);
    memcpy(b->s.spec.checkpoint, id, ID_SIZE);
    (void)pthread_mutex_unlock(&core->table.lock);
    if (pause_record(core, b, &err) < 0)
        log_warn("the place in the tree is not recorded sandbox=%s err=\"%s\"", b->s.id, err.msg);
}

static int name_free(struct core *core, const struct checkpoint *c, struct err *err)
{
    (void)pthread_mutex_lock(&core->table.lock);
    bool taken = c->name[0] && checkpoints_find(core, c->owner, c->sandbox, c->name);
    (void)pthread_mutex_unlock(&core->table.lock);
    return taken ? err_fail(err, FAIL_NAME_TAKEN, "the sandbox has a checkpoint '%s' already",
                            c->name)
                 : 0;
}

static int keep(struct core *core, struct checkpoint *c, struct err *err)
{
    int r = checkpoints_save(core, c, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&core->table.lock);
    r = checkpoints_add(&core->checkpoints, c);
    (void)pthread_mutex_unlock(&core->table.lock);
    return r < 0 ? err_set(err, -r, "cannot allocate a checkpoint") : 0;
}

/* Nobody knows a checkpoint's size beforehand, so check the quota with what the sandbox used
 * when it was last measured. */
static int check_quota(struct core *core, const struct box *b, const struct checkpoint_ask *ask,
                       struct err *err)
{
    static const int64_t nothing[QUOTA_COUNT];
    int64_t share[QUOTA_COUNT] = { 0 };
    (void)pthread_mutex_lock(&core->table.lock);
    uint64_t bytes = b->meter.disk_known ? b->meter.disk_bytes : 0;
    if (ask->memory && b->meter.memory_known)
        bytes += b->meter.memory_bytes;
    share[QUOTA_DISK_MB] = (int64_t)(bytes >> 20) + 1;
    int r = quota_check(core, b->s.owner, nothing, share, err);
    (void)pthread_mutex_unlock(&core->table.lock);
    return r;
}

int checkpoints_write(struct core *core, const struct checkpoint_ask *ask, const char *cell,
                      struct checkpoint *c, struct keeper_usage *ret_last, struct err *err)
{
    int r = ask_keeper(core, ask, cell, c, ret_last, err);
    return r < 0 ? r : keep(core, c, err);
}

int checkpoints_take(struct core *core, struct box *b, const struct checkpoint_ask *ask,
                     const char *id, struct keeper_usage *ret_last, struct err *err)
{
    _cleanup_(checkpoint_done) struct checkpoint c = { 0 };
    int r = describe(b, ask, id, &c);
    if (r < 0)
        return err_set(err, -r, "cannot describe a checkpoint");
    r = name_free(core, &c, err);
    if (r >= 0 && !ask->end) /* a pause always works: it frees memory, and counts afterwards */
        r = check_quota(core, b, ask, err);
    return r < 0 ? r : checkpoints_write(core, ask, b->s.id, &c, ret_last, err);
}

int checkpoints_note(struct core *core, struct box *b, const struct checkpoint_ask *ask,
                     const char *id, struct err *err)
{
    _cleanup_(checkpoint_done) struct checkpoint c = { 0 };
    (void)pthread_mutex_lock(&core->table.lock);
    bool known = checkpoints_find(core, b->s.owner, NULL, id);
    (void)pthread_mutex_unlock(&core->table.lock);
    int r = known ? 0 : describe(b, ask, id, &c);
    if (known)
        return 0;
    if (r < 0)
        return err_set(err, -r, "cannot describe a checkpoint");
    c.memory = ask->memory;
    c.memory_bytes = ask->memory; /* how much is not known any more; 0 would be none */
    return keep(core, &c, err);
}

/* The one of the pause that it is in: told of from now on, and kept when it is resumed. */
static int keep_paused(struct core *core, struct box *b, const struct checkpoint_ask *ask,
                       struct err *err)
{
    _cleanup_(checkpoint_done) struct checkpoint c = { 0 };
    int r = describe(b, ask, b->s.spec.paused, &c);
    if (r >= 0)
        r = name_free(core, &c, err);
    else
        r = err_set(err, -r, "cannot describe a checkpoint");
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&core->table.lock);
    struct checkpoint *there = checkpoints_find(core, c.owner, NULL, c.id);
    r = !there ? -ENOENT : strcmp(there->reason, PAUSE_REASON) != 0 ? -EEXIST : 0;
    if (r == 0) {
        c.created_ms = there->created_ms;
        c.bytes = there->bytes;
        c.memory = there->memory;
        c.memory_bytes = there->memory_bytes;
        c.archived_ms = there->archived_ms;
        c.archived_bytes = there->archived_bytes;
        c.away = there->away;
        memcpy(c.manifest, there->manifest, sizeof(c.manifest));
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    if (r == -ENOENT)
        return checkpoint_missing(err, c.id);
    if (r < 0)
        return err_fail(err, FAIL_NAME_TAKEN, "its memory is kept as checkpoint '%s' already",
                        c.id);
    r = checkpoints_save(core, &c, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&core->table.lock);
    there = checkpoints_find(core, c.owner, NULL, c.id);
    if (there) {
        struct checkpoint old = *there;
        *there = c;
        c = old;
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    return 0;
}

int checkpoints_create(struct core *core, struct box *b, const struct checkpoint_ask *ask,
                       struct checkpoint *ret_c, struct err *err)
{
    char id[ID_SIZE];
    int r = id_random(id);
    if (r < 0)
        return err_set(err, -r, "cannot make an id");
    if (ask->memory && b->s.state == SANDBOX_PAUSED) {
        memcpy(id, b->s.spec.paused, ID_SIZE);
        r = keep_paused(core, b, ask, err);
    } else if (ask->memory && b->s.state != SANDBOX_RUNNING) {
        r = err_fail(err, FAIL_SANDBOX_NOT_RUNNING,
                     "sandbox '%s' is %s: there is no memory to keep", b->s.id,
                     sandbox_state_name(b->s.state));
    } else {
        r = b->s.state == SANDBOX_PAUSED ? pause_files(core, b, err) : 0;
        if (r >= 0)
            r = checkpoints_take(core, b, ask, id, NULL, err);
        if (r < 0) {
            (void)store_checkpoint_remove(core->store, id, NULL);
            (void)checkpoints_forget(core, id, NULL);
        }
    }
    if (r < 0)
        return r;
    move_head(core, b, id);
    return checkpoint_get(core, b->s.owner, NULL, id, ret_c, err);
}

int checkpoint_create(struct core *core, const char *owner, const char *sandbox,
                      const struct checkpoint_ask *ask, struct checkpoint *ret_c, struct err *err)
{
    struct box *b;
    int r = check(ask, err);
    if (r >= 0 && !ask->leaving)
        r = disk_admit(core, err);
    if (r >= 0)
        r = sandbox_hold_settled(core, owner, sandbox, &b, err);
    if (r < 0)
        return r;
    r = b->s.spec.archived ? err_fail(err, FAIL_SANDBOX_ARCHIVED,
                                      "sandbox '%.64s' is archived; start it first", sandbox)
                           : checkpoints_create(core, b, ask, ret_c, err);
    box_release(core, b);
    if (r >= 0)
        checkpoints_tell(core, ret_c, "checkpoint.added");
    return r;
}

/* ---- reading ---- */

int checkpoint_get(struct core *core, const char *owner, const char *sandbox, const char *who,
                   struct checkpoint *ret_c, struct err *err)
{
    struct checkpoint *c;
    (void)pthread_mutex_lock(&core->table.lock);
    int r = checkpoints_resolve(core, owner, sandbox, who, &c, err);
    if (r >= 0 && checkpoint_copy(c, ret_c) < 0)
        r = err_set(err, ENOMEM, "cannot copy a checkpoint");
    (void)pthread_mutex_unlock(&core->table.lock);
    return r;
}

int checkpoint_list(struct core *core, const char *owner, const char *sandbox,
                    struct checkpoint **ret_cs, size_t *ret_n, struct err *err)
{
    const struct checkpoints *cs = &core->checkpoints;
    size_t n = 0;
    (void)pthread_mutex_lock(&core->table.lock);
    struct checkpoint *list = calloc(cs->n + 1, sizeof(*list));
    int r = list ? 0 : -ENOMEM;
    for (size_t i = 0; r >= 0 && i < cs->n; i++) {
        if (strcmp(cs->items[i].owner, owner) != 0 || checkpoint_hidden(&cs->items[i]) ||
            (sandbox && strcmp(cs->items[i].sandbox, sandbox) != 0))
            continue;
        r = checkpoint_copy(&cs->items[i], &list[n]);
        n += r >= 0;
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    if (r < 0) {
        checkpoint_list_free(list, n);
        return err_set(err, -r, "cannot copy the checkpoints");
    }
    *ret_cs = list;
    *ret_n = n;
    return 0;
}

void checkpoint_list_free(struct checkpoint *cs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        checkpoint_done(&cs[i]);
    free(cs);
}

/* ---- removing one ---- */

/* Who came from one that goes. */
struct heirs {
    struct checkpoint *items; /* copies, as they are now */
    char (*boxes)[ID_SIZE];
    size_t n, n_boxes;
};

/* Those that came from it come from its parent now. With the table's lock held. */
static void relink(struct core *core, const struct checkpoint *gone, struct heirs *h)
{
    struct checkpoints *cs = &core->checkpoints;
    h->items = calloc(cs->n + 1, sizeof(*h->items));
    h->boxes = calloc(core->table.n + 1, sizeof(*h->boxes));
    for (size_t i = 0; i < cs->n; i++) {
        if (strcmp(cs->items[i].parent, gone->id) != 0)
            continue;
        memcpy(cs->items[i].parent, gone->parent, ID_SIZE);
        h->n += h->items && checkpoint_copy(&cs->items[i], &h->items[h->n]) == 0;
    }
    for (size_t i = 0; i < core->table.n; i++) {
        struct sandbox *s = &core->table.sorted[i]->s;
        if (strcmp(s->spec.checkpoint, gone->id) != 0)
            continue;
        memcpy(s->spec.checkpoint, gone->parent, ID_SIZE);
        if (h->boxes)
            memcpy(h->boxes[h->n_boxes++], s->id, ID_SIZE);
    }
}

/* What is not recorded reads as coming from nothing after a restart; a busy one is saved by its holder. */
static void save_heirs(struct core *core, struct heirs *h)
{
    for (size_t i = 0; i < h->n; i++)
        (void)checkpoints_save(core, &h->items[i], NULL);
    for (size_t i = 0; i < h->n_boxes; i++) {
        struct box *b;
        if (box_hold(core, NULL, h->boxes[i], 0, &b) < 0)
            continue;
        (void)pause_record(core, b, NULL);
        box_release(core, b);
    }
    checkpoint_list_free(h->items, h->n);
    free(h->boxes);
}

static int needed(struct err *err, const char *id, const char *archived, const char *paused)
{
    if (archived[0])
        return err_fail(err, FAIL_CHECKPOINT_IN_USE,
                        "sandbox '%s' is archived and has no other files than checkpoint '%s'; "
                        "start or delete it first",
                        archived, id);
    return err_fail(err, FAIL_CHECKPOINT_IN_USE,
                    "sandbox '%s' is paused and goes on from it; resume or delete it first",
                    paused);
}

static void unclaim(struct core *core, const char *id)
{
    (void)pthread_mutex_lock(&core->table.lock);
    struct checkpoint *c = checkpoints_find_any(core, id);
    if (c)
        c->going = false;
    (void)pthread_mutex_unlock(&core->table.lock);
}

/* From here on nothing begins to need it; what does already keeps it. What is in object storage by now is *c's to tell:
 * who archives it meanwhile sees that it goes. */
static int claim(struct core *core, struct checkpoint *c, struct err *err)
{
    char archived[ID_SIZE] = "", paused[ID_SIZE] = "";
    (void)pthread_mutex_lock(&core->table.lock);
    struct checkpoint *there = checkpoints_find_any(core, c->id);
    for (size_t i = 0; i < core->table.n; i++) {
        const struct sandbox *s = &core->table.sorted[i]->s;
        if (archives_needs(s, c->id))
            memcpy(archived, s->id, ID_SIZE);
        else if (strcmp(s->spec.paused, c->id) == 0)
            memcpy(paused, s->id, ID_SIZE);
    }
    bool free = !archived[0] && !paused[0];
    if (there && free) {
        there->going = true;
        c->archived_ms = there->archived_ms;
        c->away = there->away;
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    if (!there)
        return checkpoint_missing(err, c->id);
    if (!free)
        return needed(err, c->id, archived, paused);
    if (!checkpoints_pinned(core, c->id))
        return 0;
    unclaim(core, c->id);
    return err_fail(err, FAIL_CHECKPOINT_IN_USE,
                    "checkpoint '%s' is being read, for a restore, a copy or an export; try again",
                    c->id);
}

static int remove_one(struct core *core, struct checkpoint *gone, bool told, struct err *err)
{
    struct heirs heirs = { 0 };
    int r = claim(core, gone, err);
    if (r < 0)
        return r;
    r = archives_forget(core, gone, err);
    if (r >= 0)
        r = store_checkpoint_remove(core->store, gone->id, err);
    if (r < 0) {
        unclaim(core, gone->id);
        return r;
    }
    (void)pthread_mutex_lock(&core->table.lock);
    struct checkpoint *c = checkpoints_find_any(core, gone->id);
    relink(core, gone, &heirs);
    if (c)
        checkpoints_drop(&core->checkpoints, c);
    (void)pthread_mutex_unlock(&core->table.lock);
    save_heirs(core, &heirs);
    if (!c) /* another request was faster */
        return checkpoint_missing(err, gone->id);
    r = checkpoints_forget(core, gone->id, err);
    if (told && !checkpoint_hidden(gone))
        checkpoints_tell(core, gone, "checkpoint.removed");
    image_tree_release(core, gone->tree);
    return r;
}

int checkpoints_remove(struct core *core, const char *owner, const char *sandbox, const char *who,
                       bool told, struct err *err)
{
    _cleanup_(checkpoint_done) struct checkpoint gone = { 0 };
    int r = checkpoint_get(core, owner, sandbox, who, &gone, err);
    return r < 0 ? r : remove_one(core, &gone, told, err);
}

void checkpoints_shed(struct core *core, const char *id)
{
    _cleanup_(checkpoint_done) struct checkpoint gone = { 0 };
    struct err err = ERR_INIT;
    (void)pthread_mutex_lock(&core->table.lock);
    const struct checkpoint *c = checkpoints_find_any(core, id);
    int r = c && checkpoint_hidden(c) ? checkpoint_copy(c, &gone) : -ENOENT;
    (void)pthread_mutex_unlock(&core->table.lock);
    if (r == -ENOENT || (r >= 0 && remove_one(core, &gone, false, &err) >= 0))
        return;
    log_warn("memory that nothing needs stays for now checkpoint=%s err=\"%s\"", id, err.msg);
    (void)pthread_mutex_lock(&core->table.lock);
    struct checkpoint *left = checkpoints_find_any(core, id);
    if (left)
        left->orphan = true;
    (void)pthread_mutex_unlock(&core->table.lock);
}

int checkpoint_remove(struct core *core, const char *owner, const char *sandbox, const char *who,
                      struct err *err)
{
    return checkpoints_remove(core, owner, sandbox, who, true, err);
}
