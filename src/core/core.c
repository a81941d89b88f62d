#include "core/core.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "core/absence.h"
#include "core/adopt.h"
#include "core/certs.h"
#include "core/count.h"
#include "core/ledger.h"
#include "core/pool.h"
#include "core/portwatch.h"
#include "core/replay.h"
#include "core/table.h"
#include "core/timers.h"
#include "core/wait.h"
#include "core/watch.h"
#include "core/who.h"

#define PATH_SIZE 4096

int thread_start(pthread_t *ret_thread, void *(*fn)(void *), void *ctx, struct err *err)
{
    pthread_attr_t attr;
    sigset_t all, old;
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, THREAD_STACK);
    (void)sigfillset(&all); /* signals are for the main thread */
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(ret_thread, &attr, fn, ctx);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    (void)pthread_attr_destroy(&attr);
    return r ? err_set(err, r, "cannot start a thread") : 0;
}

static int init(struct core *core, const struct core_config *config, struct err *err)
{
    core->watch.stop_fd = -1;
    if (config->share_volumes)
        core->volumes.sharing = VOLUME_SHARING_FINE;
    (void)pthread_mutex_init(&core->images.lock, NULL);
    (void)pthread_mutex_init(&core->keyring.lock, NULL);
    (void)pthread_mutex_init(&core->feed.lock, NULL);
    (void)pthread_mutex_init(&core->replays.lock, NULL);
    (void)pthread_mutex_init(&core->pool.lock, NULL);
    (void)pthread_mutex_init(&core->timers.lock, NULL);
    (void)pthread_mutex_init(&core->workers.lock, NULL);
    (void)pthread_mutex_init(&core->usage.lock, NULL);
    (void)pthread_mutex_init(&core->disk.lock, NULL);
    (void)pthread_mutex_init(&core->disk.look, NULL);
    core->disk.reserve_bytes = config->disk_reserve_mb << 20;
    (void)pthread_mutex_init(&core->templates.lock, NULL);
    (void)pthread_mutex_init(&core->template_builds.lock, NULL);
    (void)pthread_mutex_init(&core->secrets.lock, NULL);
    (void)pthread_mutex_init(&core->secrets.change, NULL);
    (void)pthread_mutex_init(&core->usage.flush, NULL);
    (void)pthread_mutex_init(&core->told, NULL);
    (void)pthread_mutex_init(&core->passes.lock, NULL);
    (void)pthread_mutex_init(&core->portwatch.lock, NULL);
    wait_init(&core->portwatch.wake);
    (void)pthread_mutex_init(&core->aliases.lock, NULL);
    (void)pthread_mutex_init(&core->aliases.change, NULL);
    (void)pthread_mutex_init(&core->ledger.lock, NULL);
    (void)pthread_mutex_init(&core->ledger.io, NULL);
    wait_init(&core->feed.more);
    wait_init(&core->images.made);
    wait_init(&core->rooms.settled);
    core->images.changes = 1;
    core->layer_bytes = config->layer_bytes;
    core->layer_ratio = config->layer_ratio;
    core->blobs.dir = core->blobs.partial = core->uploads_dir = -1;
    wait_init(&core->pool.wake);
    wait_init(&core->pool.changed);
    wait_init(&core->pool.warm_wake);
    wait_init(&core->timers.wake);
    wait_init(&core->workers.more);
    wait_init(&core->usage.wake);
    wait_init(&core->ledger.more);
    wait_init(&core->ledger.settled);
    core->ledger.last = &core->ledger.first;
    core->ledger.dir = -1;
    wait_init(&core->volumes.changed);
    int r = table_init(&core->table);
    if (r < 0)
        return err_set(err, -r, "cannot allocate the table of sandboxes");
    core->archive_fd = config->archive_fd;
    core->memory_promise_mb = config->memory_promise_mb;
    core->broker_fd = config->broker_fd > 0 ? fcntl(config->broker_fd, F_DUPFD_CLOEXEC, 0) : -1;
    core->run_dir = strdup(config->run_dir);
    core->data_name = strdup(config->data_name ? config->data_name : config->data_dir);
    core->egress_open = strdup(config->egress_open ? config->egress_open : "");
    core->api_names = strdup(config->api_names ? config->api_names : "");
    if (!core->run_dir || !core->data_name || !core->egress_open || !core->api_names)
        return err_set(err, ENOMEM, "cannot allocate a path");
    int limits = limits_parse(config->network_limits, &core->limits, err);
    if (limits == 0)
        limits = limits_parse(config->network_limits_most, &core->limits_most, err);
    int archives = archives_init(core, config->archive, err);
    if (limits < 0 || archives < 0)
        return limits < 0 ? limits : archives;
    return registries_init(&core->registries, config, err);
}

/* warren-backup leaves this note with what it brought back; `done` takes it away. */
static bool was_restored(const char *state_dir, bool done)
{
    char path[PATH_SIZE];
    int n = snprintf(path, sizeof(path), "%s/restored", state_dir);
    if (n < 0 || (size_t)n >= sizeof(path))
        return false;
    return (done ? unlink(path) : access(path, F_OK)) == 0;
}

static int load(struct core *core, const struct core_config *config, struct err *err)
{
    char dir[PATH_SIZE];
    int n = snprintf(dir, sizeof(dir), "%s/state", config->data_dir);
    if (n < 0 || (size_t)n >= sizeof(dir))
        return err_set(err, ENAMETOOLONG, "the path '%s' is too long", config->data_dir);
    int r = store_open(dir, &core->store, err);
    if (r >= 0)
        r = events_load(core, err);
    if (r >= 0)
        r = teams_load(core, err);
    if (r >= 0)
        r = keyring_load(core, config->first_key, err);
    if (r >= 0)
        r = tokens_load(core, err);
    if (r >= 0)
        r = secrets_load(core, dir, err);
    if (r >= 0)
        r = passes_load(core, err);
    if (r >= 0)
        r = aliases_load(core, err);
    if (r >= 0)
        r = blobs_open(core, config->data_dir, err);
    if (r >= 0)
        r = uploads_open(core, config->data_dir, err);
    if (r >= 0)
        r = templates_load(core, err);
    if (r >= 0)
        r = template_builds_load(core, err);
    if (r >= 0)
        r = images_load(core, err);
    if (r >= 0)
        r = volumes_load(core, err);
    if (r >= 0)
        r = checkpoints_load(core, err);
    if (r >= 0)
        r = archives_load(core, err);
    absence_read(core, dir);
    if (r >= 0)
        r = adopt(core, err);
    if (r >= 0)
        absence_noted(core, dir);
    if (r >= 0)
        r = ledger_open(core, dir, err);
    if (r >= 0)
        r = volumes_adopt(core, was_restored(dir, false), err);
    if (r >= 0)
        (void)was_restored(dir, true);
    if (r >= 0)
        r = checkpoints_adopt(core, err);
    return r;
}

int core_new(const struct core_config *config, struct core **ret_core, struct err *err)
{
    _cleanup_(core_freep) struct core *core = calloc(1, sizeof(*core));
    if (!core)
        return err_set(err, ENOMEM, "cannot allocate the core");
    /* The keeper may close an import's pipe at any moment: that is a failed write, not our end. */
    (void)signal(SIGPIPE, SIG_IGN);
    int r = init(core, config, err);
    if (r >= 0)
        r = load(core, config, err);
    if (r >= 0)
        disk_look(core);
    if (r >= 0)
        r = usage_start(core, config, err); /* before the jobs, which read its settings */
    if (r >= 0)
        r = ledger_start(core, err);
    if (r >= 0)
        r = jobs_start(core, err);
    if (r >= 0)
        r = timers_start(core, err);
    if (r >= 0)
        r = warm_pool_start(core, config->pool_size, err);
    if (r >= 0)
        templates_stock(core);
    if (r >= 0)
        r = volumes_start(core, err);
    if (r >= 0)
        r = watch_start(core, err);
    if (r >= 0)
        r = portwatch_start(core, err);
    if (r < 0)
        return r;
    *ret_core = take_ptr(core);
    return 0;
}

void core_free(struct core *core)
{
    if (!core)
        return;
    atomic_store(&core->stopping, true);
    events_close(core);
    who_stop(core);
    template_builds_stop(core);
    portwatch_stop(core);
    watch_stop(core);
    timers_stop(core);
    jobs_stop(core);
    warm_pool_stop(core);
    ledger_stop(core);
    usage_stop(core);
    volumes_stop(core);
    certs_stop(core);
    if (core->broker_fd > 0)
        (void)close(core->broker_fd);
    table_done(&core->table);
    images_done(&core->images);
    blobs_close(core);
    if (core->uploads_dir >= 0)
        (void)close(core->uploads_dir);
    keyring_done(&core->keyring);
    templates_done(&core->templates);
    volumes_done(&core->volumes);
    checkpoints_done(&core->checkpoints);
    archives_done(&core->archives);
    secrets_done(&core->secrets);
    passes_done(&core->passes);
    aliases_done(&core->aliases);
    teams_done(&core->teams);
    free(core->rooms.stocks);
    replays_done(core);
    store_close(core->store);
    registries_done(&core->registries);
    free(core->run_dir);
    free(core->data_name);
    free(core->egress_open);
    free(core->api_names);
    free(core);
}

int core_copy_state(struct core *core, struct err *err)
{
    (void)usage_flush(core, NULL); /* what was counted and not written yet */
    return store_copy(core->store, err);
}

const char *core_run_dir(const struct core *core)
{
    return core->run_dir;
}

const char *core_data_name(const struct core *core)
{
    return core->data_name;
}

void core_count_exec(struct core *core, int result)
{
    atomic_fetch_add(&core->execs, 1);
    if (result < 0)
        atomic_fetch_add(&core->exec_failures, 1);
}

static void count_box(const struct box *b, struct core_counts *c)
{
    const struct sandbox_spec *spec = &b->s.spec;
    bool running = b->s.state == SANDBOX_RUNNING;
    c->running += running;
    c->stopped += b->s.state == SANDBOX_STOPPED || b->s.state == SANDBOX_PAUSED;
    c->states[sandbox_shown(&b->s)]++;
    c->promised_memory_bytes += running ? spec->memory_bytes : 0;
    c->promised_cpu_millis += running ? spec->cpu_millis : 0;
    c->promised_disk_bytes += spec->disk_bytes;
    c->used_disk_bytes += b->meter.disk_known ? b->meter.disk_bytes : 0;
}

void core_counts(struct core *core, struct core_counts *ret_counts)
{
    struct core_counts c = {
        .creates = atomic_load(&core->creates),
        .create_failures = atomic_load(&core->create_failures),
        .execs = atomic_load(&core->execs),
        .exec_failures = atomic_load(&core->exec_failures),
        .deletes = atomic_load(&core->deletes),
        .ooms = atomic_load(&core->ooms),
        .builds = atomic_load(&core->builds_done),
        .build_failures = atomic_load(&core->build_failures),
        .warm_creates = atomic_load(&core->warm_creates),
        .freezes = atomic_load(&core->freezes),
        .pool_ready = warm_pool_ready(core),
        .pool_size = core->pool.blank.size,
    };
    struct network_counts *out = &core->ledger.counts[0], *in = &core->ledger.counts[1];
    c.egress.sent_bytes = atomic_load(&out->sent_bytes);
    c.egress.received_bytes = atomic_load(&out->received_bytes);
    c.egress.connections = atomic_load(&out->connections);
    c.egress.denied = atomic_load(&out->denied);
    c.previews.sent_bytes = atomic_load(&in->sent_bytes);
    c.previews.received_bytes = atomic_load(&in->received_bytes);
    c.previews.connections = atomic_load(&in->connections);
    (void)pthread_mutex_lock(&core->images.lock);
    c.images = core->images.n_names;
    (void)pthread_mutex_unlock(&core->images.lock);
    struct table *t = &core->table;
    (void)pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n; i++)
        count_box(t->sorted[i], &c);
    c.volumes = core->volumes.n;
    c.checkpoints = core->checkpoints.n;
    (void)pthread_mutex_unlock(&t->lock);
    *ret_counts = c;
}
