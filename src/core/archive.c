#include "core/archive.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/archive_private.h"
#include "core/checkpoints.h"
#include "core/event.h"
#include "core/keeper.h"
#include "core/timers.h"
#include "core/wait.h"

#define LOG_MODULE "archive"

/* ---- the storage ---- */

static bool stopping(void *arg)
{
    const struct core *core = arg;
    return atomic_load(&core->stopping);
}

int archives_init(struct core *core, const struct archive_config *config, struct err *err)
{
    struct archives *a = &core->archives;
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)pthread_mutex_init(&a->collect, NULL);
    wait_init(&a->changed);
    if (!config || !config->bucket)
        return 0;
    const struct s3_config s3 = { .endpoint = config->endpoint,
                                  .region = config->region,
                                  .bucket = config->bucket,
                                  .prefix = config->prefix ? config->prefix : "",
                                  .key_id = config->key_id,
                                  .secret = config->secret,
                                  .token = config->token,
                                  .ca_file = config->ca_file,
                                  .timeout_s = config->timeout_s,
                                  .cancelled = stopping,
                                  .arg = core };
    int r = s3_new(&s3, &a->s3, err);
    if (r < 0)
        return err_wrap(err, r, "the object storage for archives");
    if (asprintf(&a->where, "s3://%s/%s", config->bucket, s3.prefix) < 0)
        a->where = NULL;
    return a->where ? 0 : err_set(err, ENOMEM, "out of memory");
}

void archives_done(struct archives *a)
{
    s3_free(a->s3);
    free(a->where);
    a->s3 = NULL;
    a->where = NULL;
}

bool archive_ready(const struct core *core)
{
    return core->archives.s3 != NULL;
}

const char *archive_where(const struct core *core)
{
    return core->archives.where;
}

static int need_storage(const struct core *core, struct err *err)
{
    return core->archives.s3
               ? 0
               : err_fail(err, FAIL_ARCHIVE_UNAVAILABLE,
                          "this daemon has no object storage: start it with --archive");
}

/* ---- one at a time ---- */

struct archive_busy {
    struct archive_busy *next;
    char id[ID_SIZE];
    bool alone;
};

/* With the lock held. */
static bool taken(const struct archives *a, const char *id, bool alone)
{
    for (const struct archive_busy *b = a->busy; b; b = b->next)
        if (strcmp(b->id, id) == 0 && (alone || b->alone))
            return true;
    return false;
}

static struct archive_busy *take(struct core *core, const char *id, bool alone, struct err *err)
{
    struct archives *a = &core->archives;
    struct archive_busy *b = calloc(1, sizeof(*b));
    if (!b) {
        (void)err_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    memcpy(b->id, id, ID_SIZE);
    b->alone = alone;
    (void)pthread_mutex_lock(&a->lock);
    while (taken(a, id, alone))
        (void)pthread_cond_wait(&a->changed, &a->lock);
    b->next = a->busy;
    a->busy = b;
    (void)pthread_mutex_unlock(&a->lock);
    return b;
}

static void give(struct core *core, struct archive_busy *b)
{
    struct archives *a = &core->archives;
    (void)pthread_mutex_lock(&a->lock);
    for (struct archive_busy **at = &a->busy; *at; at = &(*at)->next)
        if (*at == b) {
            *at = b->next;
            break;
        }
    (void)pthread_cond_broadcast(&a->changed);
    (void)pthread_mutex_unlock(&a->lock);
    free(b);
}

/* ---- what is known of one ---- */

static int load_row(void *ctx, const struct store_archive *row)
{
    struct core *core = ctx;
    for (size_t i = 0; i < core->checkpoints.n; i++) {
        struct checkpoint *c = &core->checkpoints.items[i];
        if (strcmp(c->id, row->checkpoint) != 0)
            continue;
        c->archived_ms = row->archived_ms;
        c->archived_bytes = (uint64_t)row->bytes;
        c->away = row->away != 0;
        (void)snprintf(c->manifest, sizeof(c->manifest), "%s", row->manifest);
    }
    return 0;
}

int archives_load(struct core *core, struct err *err)
{
    return store_archive_each(core->store, load_row, core, err);
}

int archive_record(struct core *core, const struct checkpoint *c, struct err *err)
{
    const struct store_archive row = { .checkpoint = c->id,
                                       .archived_ms = c->archived_ms,
                                       .bytes = (int64_t)c->archived_bytes,
                                       .manifest = c->manifest,
                                       .away = c->away };
    int r = c->archived_ms ? store_archive_put(core->store, &row, err)
                           : store_archive_remove(core->store, c->id, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&core->table.lock);
    for (size_t i = 0; i < core->checkpoints.n; i++) {
        struct checkpoint *at = &core->checkpoints.items[i];
        if (strcmp(at->id, c->id) != 0)
            continue;
        at->archived_ms = c->archived_ms;
        at->archived_bytes = c->archived_bytes;
        at->away = c->away;
        memcpy(at->manifest, c->manifest, sizeof(at->manifest));
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    return 0;
}

static void tell(struct core *core, const struct checkpoint *c, const char *type)
{
    char data[ID_SIZE + 32];
    (void)snprintf(data, sizeof(data), "{\"id\":\"%s\"}", c->id);
    event_emit(core, c->owner, c->sandbox, type, data);
    log_info("%s checkpoint=%s", type, c->id);
}

/* Removed while it was on its way there: nobody would know what it left. */
static bool is_gone(struct core *core, const char *id)
{
    (void)pthread_mutex_lock(&core->table.lock);
    const struct checkpoint *c = checkpoints_find_any(core, id);
    bool gone = !c || c->going;
    (void)pthread_mutex_unlock(&core->table.lock);
    return gone;
}

static int free_files(struct core *core, struct checkpoint *c, struct err *err)
{
    struct keeper_request q = { .version = KEEPER_VERSION, .op = KEEPER_POINT_RM };
    c->away = true;
    int r = archive_record(core, c, err);
    if (r < 0)
        return r;
    memcpy(q.point, c->id, sizeof(q.point));
    if (keeper_ask(core, &q, NULL, NULL) < 0) /* the next start sees that they are nobody's */
        log_warn("an archived checkpoint's files stay for now checkpoint=%s", c->id);
    return 0;
}

/* Takes the one that is meant, and reads it as it is from then on. */
static int take_one(struct core *core, const char *owner, const char *who,
                    struct archive_busy **ret_b, struct checkpoint *c, struct err *err)
{
    int r = need_storage(core, err);
    if (r >= 0)
        r = checkpoint_get(core, owner, NULL, who, c, err);
    if (r < 0)
        return r;
    char id[ID_SIZE];
    memcpy(id, c->id, ID_SIZE);
    checkpoint_done(c);
    *c = (struct checkpoint){ 0 };
    *ret_b = take(core, id, true, err);
    if (!*ret_b)
        return -ENOMEM;
    r = checkpoint_get(core, owner, NULL, id, c, err);
    if (r < 0)
        give(core, *ret_b);
    return r;
}

void archives_collect_later(struct core *core)
{
    struct archives *a = &core->archives;
    if (atomic_load(&a->garbage) && !atomic_exchange(&a->queued, true) &&
        !jobs_add(core, JOB_COLLECT, "", 0))
        atomic_store(&a->queued, false);
}

static int remove_there(struct core *core, struct checkpoint *c, struct err *err)
{
    char key[ARCHIVE_KEY];
    archive_key_manifest(c->owner, c->id, key);
    int r = s3_delete(core->archives.s3, key, err);
    if (r < 0)
        return r;
    c->archived_ms = 0;
    c->away = false;
    r = archive_record(core, c, err);
    atomic_store(&core->archives.garbage, true);
    archives_collect_later(core);
    return r;
}

/* ---- there and back ---- */

static int put_taken(struct core *core, struct checkpoint *c, bool keep_local,
                     const struct archive_tell *told, struct err *err)
{
    struct archive_run run = { .core = core, .tell = told, .at = { .stage = "image" } };
    if (c->away) /* nothing here to do anything with */
        return 0;
    /* What was archived once may have been removed there by others since. */
    bool there = c->archived_ms && (keep_local || archive_verify(&run, c, NULL) >= 0);
    if (!there) {
        uint64_t bytes = 0;
        int r = archive_write(&run, c, &bytes, c->manifest, err);
        if (r < 0)
            return r;
        c->archived_ms = clock_now_ms();
        c->archived_bytes = bytes;
        r = archive_record(core, c, err);
        if (r < 0)
            return r;
        if (is_gone(core, c->id)) {
            (void)remove_there(core, c, NULL);
            return checkpoint_missing(err, c->id);
        }
        tell(core, c, "checkpoint.archived");
    }
    return keep_local ? 0 : free_files(core, c, err);
}

int archive_put(struct core *core, const char *owner, const char *who, bool keep_local,
                const struct archive_tell *told, struct checkpoint *ret_c, struct err *err)
{
    struct checkpoint c = { 0 };
    struct archive_busy *b = NULL;
    int r = take_one(core, owner, who, &b, &c, err);
    if (r < 0)
        return r;
    r = put_taken(core, &c, keep_local, told, err);
    give(core, b);
    if (r < 0)
        checkpoint_done(&c);
    else
        *ret_c = c;
    archives_collect_later(core);
    return r;
}

static int fetch_taken(struct core *core, struct checkpoint *c, const struct archive_tell *told,
                       struct err *err)
{
    struct archive_run run = { .core = core, .tell = told, .at = { .stage = "files" } };
    if (!c->away)
        return 0;
    int r = archive_read(&run, c, err);
    if (r < 0)
        return r;
    c->away = false;
    r = archive_record(core, c, err);
    if (r >= 0)
        tell(core, c, "checkpoint.fetched");
    return r;
}

int archive_fetch(struct core *core, const char *owner, const char *who,
                  const struct archive_tell *told, struct checkpoint *ret_c, struct err *err)
{
    struct checkpoint c = { 0 };
    struct archive_busy *b = NULL;
    int r = take_one(core, owner, who, &b, &c, err);
    if (r < 0)
        return r;
    r = fetch_taken(core, &c, told, err);
    give(core, b);
    if (r < 0)
        checkpoint_done(&c);
    else
        *ret_c = c;
    return r;
}

static bool is_away(struct core *core, const char *id)
{
    bool away = false;
    (void)pthread_mutex_lock(&core->table.lock);
    for (size_t i = 0; i < core->checkpoints.n; i++)
        if (strcmp(core->checkpoints.items[i].id, id) == 0)
            away = core->checkpoints.items[i].away;
    (void)pthread_mutex_unlock(&core->table.lock);
    return away;
}

int checkpoints_pin(struct core *core, const struct checkpoint *c, struct archive_busy **ret_pin,
                    struct err *err)
{
    for (;;) {
        struct checkpoint now = { 0 };
        struct archive_busy *b = take(core, c->id, false, err);
        if (!b)
            return -ENOMEM;
        bool away = is_away(core, c->id), gone = is_gone(core, c->id);
        if (!away && !gone) {
            *ret_pin = b;
            return 0;
        }
        give(core, b);
        if (gone) /* who removes it looks for pins after it said so */
            return checkpoint_missing(err, c->id);
        int r = archive_fetch(core, c->owner, c->id, NULL, &now, err);
        checkpoint_done(&now);
        if (r < 0)
            return r;
    }
}

bool checkpoints_pinned(struct core *core, const char *id)
{
    struct archives *a = &core->archives;
    bool pinned = false;
    (void)pthread_mutex_lock(&a->lock);
    for (const struct archive_busy *b = a->busy; b && !pinned; b = b->next)
        pinned = !b->alone && strcmp(b->id, id) == 0;
    (void)pthread_mutex_unlock(&a->lock);
    return pinned;
}

void checkpoints_unpin(struct core *core, struct archive_busy *pin)
{
    if (pin)
        give(core, pin);
}

/* ---- removing ---- */

int archive_remove(struct core *core, const char *owner, const char *who, struct err *err)
{
    _cleanup_(checkpoint_done) struct checkpoint c = { 0 };
    struct archive_busy *b = NULL;
    int r = take_one(core, owner, who, &b, &c, err);
    if (r < 0)
        return r;
    if (c.away)
        r = err_fail(err, FAIL_CHECKPOINT_AWAY,
                     "the archive is all there is of checkpoint '%s': fetch it first, or remove "
                     "the checkpoint",
                     c.id);
    else if (c.archived_ms)
        r = remove_there(core, &c, err);
    give(core, b);
    if (r >= 0)
        tell(core, &c, "checkpoint.unarchived");
    return r;
}

int archives_forget(struct core *core, const struct checkpoint *c, struct err *err)
{
    if (!c->archived_ms)
        return 0;
    if (!core->archives.s3) {
        log_warn("an archive stays: there is no object storage now checkpoint=%s", c->id);
        return store_archive_remove(core->store, c->id, err);
    }
    struct checkpoint gone = *c; /* borrowed */
    struct archive_busy *b = take(core, c->id, true, err);
    if (!b)
        return -ENOMEM;
    int r = remove_there(core, &gone, err);
    give(core, b);
    return r;
}
