#include "core/build.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/build_private.h"
#include "core/disk.h"
#include "core/network.h"
#include "core/quota.h"

#define LOG_MODULE "build"
#define QUEUE_BYTES (1024 * 1024) /* a reader that is slower than this holds the build back */
#define EVENT_BYTES 256           /* what one counts for beside its text */

struct build_queued {
    struct build_queued *next;
    struct build_event event;
};

/* ---- events ---- */

void build_event_done(struct build_event *event)
{
    free(event->text);
    event->text = NULL;
}

static struct build_queued *take(struct build *b)
{
    (void)pthread_mutex_lock(&b->lock);
    struct build_queued *q = b->head;
    if (q) {
        b->head = q->next;
        if (!b->head)
            b->tail = NULL;
        b->queued_bytes -= EVENT_BYTES + q->event.len;
        (void)pthread_cond_signal(&b->room);
    }
    (void)pthread_mutex_unlock(&b->lock);
    return q;
}

int build_tell(struct build *b, struct build_event *event)
{
    uint64_t one = 1;
    struct build_queued *q = malloc(sizeof(*q));
    if (!q) {
        build_event_done(event);
        return -ENOMEM;
    }
    q->next = NULL;
    q->event = *event;
    (void)pthread_mutex_lock(&b->lock);
    while (b->queued_bytes > QUEUE_BYTES && !b->cancelled)
        (void)pthread_cond_wait(&b->room, &b->lock);
    bool cancelled = b->cancelled;
    if (!cancelled) {
        if (b->tail)
            b->tail->next = q;
        else
            b->head = q;
        b->tail = q;
        b->queued_bytes += EVENT_BYTES + q->event.len;
    }
    (void)pthread_mutex_unlock(&b->lock);
    if (cancelled) {
        build_event_done(&q->event);
        free(q);
        return -ECANCELED;
    }
    (void)!write(b->more_fd, &one, sizeof(one));
    return 0;
}

int build_warn(struct build *b, unsigned line, const char *text)
{
    struct build_event ev = { .type = BUILD_WARNING, .line = line, .text = strdup(text) };
    if (!ev.text)
        return -ENOMEM;
    ev.len = strlen(text);
    return build_tell(b, &ev);
}

bool build_cancelled(struct build *b)
{
    (void)pthread_mutex_lock(&b->lock);
    bool cancelled = b->cancelled;
    (void)pthread_mutex_unlock(&b->lock);
    return cancelled;
}

int build_next(struct build *build, int timeout_ms, int hangup_fd, struct build_event *ret_event)
{
    int64_t deadline = clock_mono_ms() + timeout_ms;
    for (;;) {
        struct build_queued *q = take(build);
        if (q) {
            *ret_event = q->event;
            free(q);
            return 1;
        }
        int64_t left = deadline - clock_mono_ms();
        if (left <= 0)
            return 0;
        struct pollfd pf[2] = { { .fd = build->more_fd, .events = POLLIN },
                                { .fd = hangup_fd, .events = POLLRDHUP } };
        if (poll(pf, hangup_fd < 0 ? 1 : 2, (int)left) < 0 && errno != EINTR)
            return -errno;
        if (pf[1].revents)
            return -ECANCELED;
        uint64_t count;
        if (pf[0].revents)
            (void)!read(build->more_fd, &count, sizeof(count));
    }
}

/* ---- the thread ---- */

static void tell_end(struct build *b, int r, const struct image *image, const struct err *err)
{
    struct build_event ev = { .type = r < 0 ? BUILD_FAILED : BUILD_IMAGE };
    if (r < 0) {
        ev.err = *err;
        ev.line = b->line;
        atomic_fetch_add(&b->core->build_failures, 1);
    } else {
        ev.image = *image;
        atomic_fetch_add(&b->core->builds_done, 1);
    }
    (void)build_tell(b, &ev);
}

static void *work(void *arg)
{
    struct build *b = arg;
    struct err err = ERR_INIT;
    struct image image = { 0 };
    int64_t began = clock_mono_ms();
    int r = build_run(b, &err);
    if (r >= 0)
        r = build_finish(b, &b->stages[b->plan.target], &image, &err);
    long long took = (long long)(clock_mono_ms() - began);
    if (r >= 0)
        log_info("built image=%s id=%s took_ms=%lld", b->name, image.id, took);
    else
        log_info("build failed image=%s line=%u err=\"%s\" took_ms=%lld", b->name, b->line,
                 failure_name(err.failure), took);
    if (r < 0 && !err.code)
        (void)err_set(&err, -r, "the build failed");
    if (r < 0 && b->recipe)
        build_recipe_reword(&err);
    tell_end(b, r, &image, &err);
    return NULL;
}

int build_start(struct build *build, struct err *err)
{
    int r = thread_start(&build->thread, work, build, err);
    build->started = r >= 0;
    return r;
}

/* ---- begin and end ---- */

static int take_args(struct build *b, const struct pairs *args, struct err *err)
{
    int r = 0;
    for (size_t i = 0; args && i < args->n && r >= 0; i++)
        r = vars_set(&b->world.given, args->names[i], args->values[i]);
    if (r >= 0)
        r = scope_world_platform(&b->world, oci_machine());
    return r < 0 ? err_set(err, -r, "cannot keep the build's arguments") : 0;
}

/* What a build may use at most: its context and one step. */
static void share_of(int64_t ret_share[QUOTA_COUNT])
{
    struct sandbox_spec spec = { .memory_bytes = BUILD_MEMORY,
                                 .disk_bytes = 2 * BUILD_DISK,
                                 .cpu_millis = BUILD_CPU_MILLIS };
    quota_of(&spec, true, ret_share);
}

/* Among the builds that run, if there is room for one more. */
static int enlist(struct build *b, struct err *err)
{
    static const int64_t nothing[QUOTA_COUNT];
    struct core *core = b->core;
    int64_t share[QUOTA_COUNT];
    unsigned n = 0;
    share_of(share);
    (void)pthread_mutex_lock(&core->table.lock);
    for (const struct build *at = core->builds; at; at = at->next)
        n++;
    int r = n < BUILDS_MAX
                ? quota_check(core, b->owner, nothing, share, err)
                : err_fail_as(err, EBUSY, FAIL_CAPACITY,
                              "%d builds are running already; try again when one has ended",
                              BUILDS_MAX);
    if (r >= 0) {
        b->next = core->builds;
        core->builds = b;
        b->listed = true;
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    return r;
}

static void delist(struct build *b)
{
    if (!b->listed)
        return;
    (void)pthread_mutex_lock(&b->core->table.lock);
    for (struct build **at = &b->core->builds; *at; at = &(*at)->next)
        if (*at == b) {
            *at = b->next;
            break;
        }
    (void)pthread_mutex_unlock(&b->core->table.lock);
}

void build_in_use(struct core *core, const char *owner, int64_t in_use[QUOTA_COUNT])
{
    int64_t share[QUOTA_COUNT];
    share_of(share);
    for (const struct build *b = core->builds; b; b = b->next)
        for (int q = 0; q < QUOTA_COUNT && (!owner || strcmp(b->owner, owner) == 0); q++)
            in_use[q] += share[q];
}

static int init(struct build *b, const struct build_config *config, struct err *err)
{
    b->no_cache = config->no_cache;
    b->public = config->public;
    b->trusted = config->trusted;
    b->more_fd = b->alive[0] = b->alive[1] = -1;
    scope_world_init(&b->world, '\\');
    (void)pthread_mutex_init(&b->lock, NULL);
    (void)pthread_cond_init(&b->room, NULL);
    (void)snprintf(b->owner, sizeof(b->owner), "%s", config->owner);
    int r = image_name_normal(config->name, b->name, err);
    if (r >= 0)
        r = network_check(config->network, err);
    if (r < 0)
        return r;
    b->dockerfile_name = strdup(config->dockerfile ? config->dockerfile : "Dockerfile");
    b->target = config->target ? strdup(config->target) : NULL;
    b->network = config->network ? strdup(config->network) : NULL;
    if (!b->dockerfile_name || (config->target && !b->target) || (config->network && !b->network))
        return err_set(err, ENOMEM, "cannot allocate a build");
    b->more_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (b->more_fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b->alive) < 0)
        return err_set(err, errno, "cannot make a build's descriptors");
    if (config->recipe)
        r = build_recipe_take(b, config->recipe, err);
    return r < 0 ? r : take_args(b, config->args, err);
}

int build_begin(struct core *core, const struct build_config *config, struct build **ret_build,
                struct err *err)
{
    struct build *b = calloc(1, sizeof(*b));
    if (!b)
        return err_set(err, ENOMEM, "cannot allocate a build");
    b->core = core;
    int r = init(b, config, err);
    if (r >= 0)
        r = disk_admit(core, err);
    if (r >= 0)
        r = enlist(b, err);
    if (r >= 0) {
        image_hold_begin(core, b->owner, &b->hold);
        b->hold.room.inside = true;
        b->holds = true;
        r = b->recipe ? build_context_make(b, err) : build_context_open(b, err);
    }
    if (r < 0) {
        build_free(b);
        return r;
    }
    *ret_build = b;
    return 0;
}

int build_write(struct build *build, const void *p, size_t n, struct err *err)
{
    if (!build->unpacking)
        return 0;
    int r = archiver_write(build->unpacking, p, n);
    if (r == -EPIPE) /* it ended early; build_context_close tells why */
        return build_context_close(build, err);
    return r < 0 ? err_set(err, -r, "cannot pass the context on") : 0;
}

static void cancel(struct build *b)
{
    (void)pthread_mutex_lock(&b->lock);
    b->cancelled = true;
    (void)pthread_cond_broadcast(&b->room);
    (void)pthread_mutex_unlock(&b->lock);
    if (b->alive[1] >= 0)
        (void)close(take_fd(b->alive[1]));
    if (b->started)
        (void)pthread_join(b->thread, NULL);
}

void build_free(struct build *build)
{
    struct build *b = build;
    if (!b)
        return;
    cancel(b);
    archiver_free(b->unpacking);
    for (size_t i = 0; b->stages && i < b->file.n_stages; i++)
        build_stage_done(b, &b->stages[i]);
    free(b->stages);
    for (size_t i = 0; i < b->n_others; i++)
        build_cell_done(b, &b->others[i].cell);
    build_cell_done(b, &b->context);
    if (b->holds)
        image_hold_end(b->core, &b->hold);
    delist(b);
    for (struct build_queued *q; (q = take(b));) {
        build_event_done(&q->event);
        free(q);
    }
    plan_done(&b->plan);
    dockerfile_done(&b->file);
    scope_world_done(&b->world);
    ignore_done(&b->ignore);
    if (b->alive[0] >= 0)
        (void)close(b->alive[0]);
    if (b->more_fd >= 0)
        (void)close(b->more_fd);
    (void)pthread_mutex_destroy(&b->lock);
    (void)pthread_cond_destroy(&b->room);
    build_recipe_done(b);
    free(b->dockerfile_name);
    free(b->target);
    free(b->network);
    free(b);
}
