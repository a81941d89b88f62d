#include "core/template_memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/checkpoints.h"
#include "core/keeper.h"
#include "core/quota.h"
#include "core/spec.h"
#include "core/template.h"

#define LOG_MODULE "template"

int template_memory_host(struct core *core, char ret_host[MEMORY_HOST_SIZE], struct err *err)
{
    struct keeper_request q = { .version = KEEPER_VERSION, .op = KEEPER_PROBE };
    struct keeper_reply reply;
    struct utsname u;
    int r = keeper_ask(core, &q, &reply, err);
    if (r < 0)
        return r;
    reply.memory_text[sizeof(reply.memory_text) - 1] = '\0';
    if (!(reply.probe & KEEPER_HAS_MEMORY_IMAGES) || uname(&u) < 0)
        return err_fail(err, FAIL_MEMORY_UNSUPPORTED, "%s", reply.memory_text);
    (void)snprintf(ret_host, MEMORY_HOST_SIZE, "%s %s %s; %s; init %016llx", u.release, u.version,
                   u.machine, reply.memory_text, (unsigned long long)reply.init_id);
    return 0;
}

/* With the table's lock held: the next of a version from *at on; NULL: no more. */
static const struct checkpoint *next_of(struct core *core, const char *version, size_t *at)
{
    const struct checkpoints *cs = &core->checkpoints;
    while (*at < cs->n) {
        const struct checkpoint *c = &cs->items[(*at)++];
        if (checkpoint_of_template(c) && !c->going && !c->orphan &&
            (!version || strcmp(c->sandbox, version) == 0))
            return c;
    }
    return NULL;
}

bool template_memory_find(struct core *core, const char *version, const char *tree,
                          const char *host, char ret_point[ID_SIZE])
{
    const struct checkpoint *c;
    bool found = false;
    size_t at = 0;
    do {
        char stale[ID_SIZE] = "";
        (void)pthread_mutex_lock(&core->table.lock);
        while (!stale[0] && (c = next_of(core, version, &at))) {
            if (found || strcmp(c->tree, tree) != 0 || strcmp(c->comment, host) != 0) {
                memcpy(stale, c->id, ID_SIZE);
                at = 0; /* what follows moves up, and this one is not met again */
            } else {
                memcpy(ret_point, c->id, ID_SIZE);
                found = true;
            }
        }
        (void)pthread_mutex_unlock(&core->table.lock);
        if (stale[0]) {
            checkpoints_shed(core, stale);
            found = false; /* it is met once more */
        }
    } while (c);
    return found;
}

/* Nobody knows the size of a checkpoint beforehand: what the cell uses now comes close. */
static int check_quota(struct core *core, const struct sandbox *s, struct err *err)
{
    static const int64_t nothing[QUOTA_COUNT];
    int64_t share[QUOTA_COUNT] = { 0 };
    struct keeper_usage usage;
    int r = keeper_ask_stat(core, s->id, &usage, err);
    if (r < 0)
        return r;
    share[QUOTA_DISK_MB] = (int64_t)((usage.memory_bytes + usage.disk_bytes) >> 20) + 1;
    (void)pthread_mutex_lock(&core->table.lock);
    r = quota_check(core, s->owner, nothing, share, err);
    (void)pthread_mutex_unlock(&core->table.lock);
    return r;
}

int template_memory_keep(struct core *core, const char *version, const struct sandbox *s,
                         const char *tree, const char *host, char ret_point[ID_SIZE],
                         struct err *err)
{
    const struct checkpoint_ask ask = { .reason = TEMPLATE_REASON, .memory = true, .end = true };
    _cleanup_(checkpoint_done) struct checkpoint c = { .created_ms = clock_now_ms() };
    char id[ID_SIZE];
    int r = check_quota(core, s, err);
    if (r >= 0 && id_random(id) < 0)
        r = err_set(err, EIO, "cannot make an id");
    if (r < 0)
        return r;
    memcpy(c.id, id, ID_SIZE);
    memcpy(c.sandbox, version, ID_SIZE);
    memcpy(c.owner, s->owner, sizeof(c.owner));
    memcpy(c.tree, tree, sizeof(c.tree));
    (void)snprintf(c.reason, sizeof(c.reason), "%s", TEMPLATE_REASON);
    c.comment = strdup(host);
    c.spec = spec_to_json(&s->spec, false);
    if (!c.comment || !c.spec)
        return err_set(err, ENOMEM, "cannot describe a checkpoint");
    r = checkpoints_write(core, &ask, s->id, &c, NULL, err);
    if (r < 0) {
        (void)store_checkpoint_remove(core->store, id, NULL);
        (void)checkpoints_forget(core, id, NULL);
        return r;
    }
    memcpy(ret_point, id, ID_SIZE);
    return 0;
}

int template_memory_copy(struct core *core, const struct sandbox *s, const char *tree,
                         const char *point, struct err *err)
{
    struct checkpoint c = { .created_ms = 0 };
    struct archive_busy *pin = NULL;
    memcpy(c.id, point, ID_SIZE);
    int r = checkpoints_pin(core, &c, &pin, err);
    if (r >= 0)
        r = checkpoints_fill(core, s->id, point, s->spec.disk_bytes, err);
    if (r >= 0)
        r = keeper_ask_make_sandbox(core, s, tree, point, err);
    checkpoints_unpin(core, pin);
    return r;
}

void template_memory_forget(struct core *core, const char *point)
{
    checkpoints_shed(core, point);
}

static bool is_a_template(struct core *core, const char *version)
{
    struct templates *ts = &core->templates;
    bool found = false;
    (void)pthread_mutex_lock(&ts->lock);
    for (size_t i = 0; i < ts->n && !found; i++)
        found = strcmp(ts->items[i].id, version) == 0;
    (void)pthread_mutex_unlock(&ts->lock);
    return found;
}

void template_memory_sweep(struct core *core)
{
    char id[ID_SIZE], version[ID_SIZE];
    const struct checkpoint *c;
    size_t at = 0;
    do {
        (void)pthread_mutex_lock(&core->table.lock);
        c = next_of(core, NULL, &at);
        if (c) {
            memcpy(id, c->id, ID_SIZE);
            memcpy(version, c->sandbox, ID_SIZE);
        }
        (void)pthread_mutex_unlock(&core->table.lock);
        if (c && !is_a_template(core, version)) {
            checkpoints_shed(core, id);
            at = 0; /* the rest moved up; one that could not be removed is an orphan now */
        }
    } while (c);
}
