/* Templates' memory (template_memory.h): when it is made, and which creates are copies of it. It is made once one was
 * booted and would have been a copy, or where some are to be kept ready, by the thread that makes those. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/pool.h"
#include "core/spec.h"
#include "core/template_memory.h"

#define LOG_MODULE "template"
#define LOST_MAX 3 /* copies that fail in a row: the machine may have had no room for one of them */
#define FAILURES_MAX \
    3 /* in a row, of a kind that does not pass: then they boot, until the next version or start */

static const char *name_of(const struct sandbox_spec *spec)
{
    return spec->template ? spec->template : "";
}

/* ---- with the lock held ---- */

static void add_stale(struct pool *p, const char *point)
{
    char(*stale)[ID_SIZE] = reallocarray(p->stale, p->n_stale + 1, sizeof(*stale));
    if (!stale)
        return; /* it stays until the next start */
    p->stale = stale;
    memcpy(p->stale[p->n_stale++], point, ID_SIZE);
    (void)pthread_cond_signal(&p->warm_wake);
}

void shelf_memory_drop(struct pool *p, struct shelf *s)
{
    bool wanted = s->memory.wanted;
    if (s->memory.point[0])
        add_stale(p, s->memory.point);
    s->memory = (struct shelf_memory){ .wanted = wanted };
}

/* Limits of a copy are set when it is there: it must fit in them. */
static bool is_enough(const struct shelf *s, const struct keeper_limits *limits)
{
    struct keeper_limits own = spec_limits(&s->spec);
    return limits->memory_bytes >= own.memory_bytes && limits->disk_bytes >= own.disk_bytes &&
           limits->pids >= own.pids;
}

struct shelf *shelf_memory_neediest(struct pool *p, int64_t now, int64_t *ret_at)
{
    for (size_t i = 0; i < p->n_warm && !p->memoryless; i++) {
        struct shelf *s = &p->warm[i];
        const struct shelf_memory *m = &s->memory;
        if (!s->tree[0] || !boot_any(&s->spec.boot) || m->given_up || m->point[0] ||
            (m->looked && !m->wanted))
            continue;
        if (m->retry_ms <= now)
            return s;
        if (*ret_at == 0 || m->retry_ms < *ret_at)
            *ret_at = m->retry_ms;
    }
    return NULL;
}

/* Log the first failure and its reason; later tries fail the same way. */
static void note_failure(struct shelf *s, bool passes, const struct err *err)
{
    struct shelf_memory *m = &s->memory;
    if (m->failures == 0)
        log_warn("its memory is not kept, and its creates boot template=%s err=\"%s\"",
                 name_of(&s->spec), err->msg);
    m->retry_ms = shelf_retry(m->failures++);
    m->given_up = !passes && m->failures >= FAILURES_MAX;
}

/* ---- the thread ---- */

void shelf_memory_shed(struct core *core)
{
    struct pool *p = &core->pool;
    char id[ID_SIZE];
    memcpy(id, p->stale[--p->n_stale], ID_SIZE);
    (void)pthread_mutex_unlock(&p->lock);
    template_memory_forget(core, id);
    (void)pthread_mutex_lock(&p->lock);
}

/* What an earlier daemon kept. */
static void look(struct core *core, struct pool *p, const struct shelf *shelf)
{
    char key[ID_SIZE], tree[KEEPER_IMAGE_SIZE], host[MEMORY_HOST_SIZE], point[ID_SIZE];
    struct err err = ERR_INIT;
    memcpy(key, shelf->key, sizeof(key));
    memcpy(tree, shelf->tree, sizeof(tree));
    (void)pthread_mutex_unlock(&p->lock);
    int r = template_memory_host(core, host, &err);
    bool found = r >= 0 && template_memory_find(core, key, tree, host, point);
    (void)pthread_mutex_lock(&p->lock);
    struct shelf *s = shelf_find(p, key);
    if (!s && found)
        add_stale(p, point);
    if (!s || strcmp(s->tree, tree) != 0)
        return;
    if (r == -EOPNOTSUPP) {
        log_warn("templates' creates boot: their memory is not kept err=\"%s\"", err.msg);
        p->memoryless = true;
    } else if (r < 0) {
        s->memory.retry_ms = shelf_retry(0);
    } else {
        s->memory.looked = true;
        if (found)
            memcpy(s->memory.point, point, ID_SIZE);
    }
}

/* Keeps what was booted for it ready instead, if that runs and some are to be. */
static bool put_ready(struct shelf *s, const struct shelf_work *w)
{
    if (!shelf_has_room(s))
        return false;
    s->ready[s->n_ready++] = w->cell;
    return true;
}

static bool is_refused(const struct err *err)
{
    return err->failure == FAIL_CANNOT_DUMP || err->failure == FAIL_MEMORY_UNSUPPORTED;
}

static void keep(struct core *core, struct pool *p, const struct shelf *shelf)
{
    char key[ID_SIZE], host[MEMORY_HOST_SIZE], point[ID_SIZE];
    struct err err = ERR_INIT;
    struct shelf_work w;
    memcpy(key, shelf->key, sizeof(key));
    int64_t began = clock_mono_ms();
    int r = shelf_work_begin(core, shelf, &w, &err);
    if (r >= 0)
        r = template_memory_host(core, host, &err);
    if (r >= 0)
        r = shelf_work_boot(core, &w, &err);
    bool booted = r >= 0;
    if (r >= 0)
        r = template_memory_keep(core, key, &w.s, w.cell.tree, host, point, &err);
    if (r >= 0)
        log_info("memory kept template=%s took_ms=%lld", name_of(&w.asked),
                 (long long)(clock_mono_ms() - began));
    struct shelf *at = shelf_work_end(core, &w);
    bool used = false;
    if (r >= 0 && at)
        memcpy(at->memory.point, point, ID_SIZE);
    else if (r >= 0)
        add_stale(p, point);
    if (r < 0 && r != -ECANCELED && at && !atomic_load(&core->stopping)) {
        used = booted && is_refused(&err) && put_ready(at, &w);
        note_failure(at, !is_refused(&err), &err);
        if (!booted) { /* nor can one be made ready; who creates one is told why */
            at->memory.wanted = at->size > 0;
            at->retry_ms = shelf_retry(at->failures++);
        }
    }
    if (!used && w.cell.id[0])
        pool_trash(p, &w.cell);
}

void shelf_memory_fill(struct core *core, const struct shelf *s)
{
    if (s->memory.looked)
        keep(core, &core->pool, s);
    else
        look(core, &core->pool, s);
}

/* ---- for requests ---- */

bool warm_pool_memory(struct core *core, const char *key, const char *tree,
                      const struct keeper_limits *limits, char ret_point[ID_SIZE])
{
    struct pool *p = &core->pool;
    (void)pthread_mutex_lock(&p->lock);
    const struct shelf *s = shelf_find(p, key);
    bool found = s && s->memory.point[0] && strcmp(s->tree, tree) == 0 && is_enough(s, limits);
    if (found)
        memcpy(ret_point, s->memory.point, ID_SIZE);
    (void)pthread_mutex_unlock(&p->lock);
    return found;
}

void warm_pool_copied(struct core *core, const char *key, const char *point, int r,
                      const struct err *err)
{
    struct pool *p = &core->pool;
    (void)pthread_mutex_lock(&p->lock);
    struct shelf *s = shelf_find(p, key);
    struct shelf_memory *m = s && strcmp(s->memory.point, point) == 0 ? &s->memory : NULL;
    if (m && r >= 0)
        m->lost = m->failures = 0;
    if (m && r < 0 && r != -ENOTCONN && !atomic_load(&core->stopping)) {
        bool gone = err->failure == FAIL_CHECKPOINT_NOT_FOUND;
        m->lost++;
        if (m->lost == 1)
            log_warn("its memory cannot be copied template=%s err=\"%s\"", name_of(&s->spec),
                     err->msg);
        if (gone || m->lost == LOST_MAX) {
            add_stale(p, m->point);
            m->point[0] = '\0';
            m->lost = 0;
            note_failure(s, false, err);
        }
    }
    (void)pthread_mutex_unlock(&p->lock);
}

void warm_pool_want_memory(struct core *core, const char *key, const struct keeper_limits *limits)
{
    struct pool *p = &core->pool;
    (void)pthread_mutex_lock(&p->lock);
    struct shelf *s = shelf_find(p, key);
    if (s && !s->memory.wanted && is_enough(s, limits)) {
        s->memory.wanted = true;
        (void)pthread_cond_signal(&p->warm_wake);
    }
    (void)pthread_mutex_unlock(&p->lock);
}
