#include "crowd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "host.h"
#include "warren.h"

#define IDLE_CLIENTS 8  /* enough to keep two cores busy while the thousand are made */
#define SETTLE_MS 10000 /* the daemon's own tidying and pool refill after the last answer */
#define SETTLE_STEP_MS 100
#define IDLE_QUIET_MS 3000 /* for the kernel's deferred frees, before memory is read */
#define FIND_DEPTH 5
#define THREAD_STACK (256 * 1024)

/* One client. Threads share nothing: each fills its own, and the caller adds them up. */
struct client {
    pthread_t thread;
    const struct crowd_daemon *daemon;
    double until_us;
    unsigned wanted;
    struct host_ids ids;
    struct sample times;
    unsigned failures;
    char first_failure[400];
};

static void failed(struct client *c, const struct err *err)
{
    if (!c->failures++)
        (void)snprintf(c->first_failure, sizeof(c->first_failure), "%s", err->msg);
}

/* After a failure the connection's state is unknown: a new one. */
static int reconnect(struct client *c, struct http *h)
{
    struct err err = ERR_INIT;
    int r;

    http_close(h);
    r = http_open(h, c->daemon->port, c->daemon->key, &err);
    if (r < 0)
        failed(c, &err);
    return r;
}

static int live_once(struct client *c, struct http *h, struct err *err)
{
    char id[ID_SIZE] = "";
    double out, start = now_us();
    int r = warren_create(h, id, err);

    if (r < 0)
        return r;
    host_ids_add(&c->ids, id);
    r = warren_echo(h, id, false, &out, err);
    if (r < 0) {
        (void)warren_delete(h, id, NULL);
        return r;
    }
    r = warren_delete(h, id, err);
    if (r < 0)
        return r;
    sample_add(&c->times, now_us() - start);
    return 0;
}

static void *storm_client(void *arg)
{
    struct client *c = arg;
    struct http h = { .fd = -1 };
    int r = reconnect(c, &h);

    while (r >= 0 && now_us() < c->until_us) {
        struct err err = ERR_INIT;

        if (live_once(c, &h, &err) < 0) {
            failed(c, &err);
            r = reconnect(c, &h);
        }
    }
    http_close(&h);
    return NULL;
}

static void *idle_create(void *arg)
{
    struct client *c = arg;
    struct http h = { .fd = -1 };
    int r = reconnect(c, &h);

    for (unsigned i = 0; r >= 0 && i < c->wanted; i++) {
        struct err err = ERR_INIT;
        char id[ID_SIZE] = "";

        if (warren_create(&h, id, &err) < 0) {
            failed(c, &err);
            r = reconnect(c, &h);
        } else {
            host_ids_add(&c->ids, id);
        }
    }
    http_close(&h);
    return NULL;
}

static void *idle_delete(void *arg)
{
    struct client *c = arg;
    struct http h = { .fd = -1 };
    int r = reconnect(c, &h);

    for (size_t i = 0; r >= 0 && i < c->ids.n; i++) {
        struct err err = ERR_INIT;

        if (warren_delete(&h, c->ids.id[i], &err) < 0) {
            failed(c, &err);
            r = reconnect(c, &h);
        }
    }
    http_close(&h);
    return NULL;
}

static void run_clients(struct client *clients, unsigned n, void *(*body)(void *))
{
    pthread_attr_t attr;

    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, THREAD_STACK);
    for (unsigned i = 0; i < n; i++)
        if (pthread_create(&clients[i].thread, &attr, body, &clients[i]) != 0)
            abort();
    for (unsigned i = 0; i < n; i++)
        (void)pthread_join(clients[i].thread, NULL);
    (void)pthread_attr_destroy(&attr);
}

static struct client *make_clients(const struct crowd_daemon *d, unsigned n)
{
    struct client *clients = calloc(n, sizeof(*clients));

    if (!clients)
        abort();
    for (unsigned i = 0; i < n; i++)
        clients[i].daemon = d;
    return clients;
}

static void free_clients(struct client *clients, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        host_ids_done(&clients[i].ids);
        sample_done(&clients[i].times);
    }
    free(clients);
}

/* ---- the storm ---- */

/* The keeper may live in a mount namespace of its own: its data is read through its root. */
static unsigned left_behind(const struct crowd_daemon *d, const struct host_ids *ids, char *example,
                            size_t size)
{
    pid_t keeper = host_child(d->pid, "warren-keeper");
    char root[64], path[512];
    unsigned n;

    (void)snprintf(root, sizeof(root), "/proc/%d/root", (int)(keeper ? keeper : d->pid));
    n = host_find_ids("/sys/fs/cgroup", FIND_DEPTH, ids, example, size);
    n += host_find_ids(d->run_dir, FIND_DEPTH, ids, example, size);
    if (snprintf(path, sizeof(path), "%s%s", root, d->data_dir) < (int)sizeof(path))
        n += host_find_ids(path, FIND_DEPTH, ids, example, size);
    return n + host_find_mounts(keeper ? keeper : d->pid, ids, example, size);
}

void crowd_storm(const struct crowd_daemon *d, struct crowd_storm *storm)
{
    struct client *clients = make_clients(d, storm->clients);
    unsigned before = host_tree_size(d->pid), after = 0;
    struct host_ids ids = { 0 };

    for (unsigned i = 0; i < storm->clients; i++)
        clients[i].until_us = now_us() + storm->seconds * 1e6;
    run_clients(clients, storm->clients, storm_client);
    for (unsigned i = 0; i < storm->clients; i++) {
        struct client *c = &clients[i];

        sample_merge(&storm->life, &c->times);
        if (!storm->failures && c->failures)
            (void)snprintf(storm->first_failure, sizeof(storm->first_failure), "%s",
                           c->first_failure);
        storm->failures += c->failures;
        for (size_t k = 0; k < c->ids.n; k++)
            host_ids_add(&ids, c->ids.id[k]);
    }
    host_ids_sort(&ids);
    for (unsigned ms = 0; ms <= SETTLE_MS; ms += SETTLE_STEP_MS) {
        after = host_tree_size(d->pid);
        storm->left_behind = left_behind(d, &ids, storm->example, sizeof(storm->example));
        if (after <= before && !storm->left_behind)
            break;
        pause_ms(SETTLE_STEP_MS);
    }
    if (after > before) {
        storm->left_behind += after - before;
        (void)snprintf(storm->example, sizeof(storm->example), "%u processes more than before",
                       after - before);
    }
    host_ids_done(&ids);
    free_clients(clients, storm->clients);
}

/* ---- the idle thousand ---- */

/* Names and inodes the kernel only remembers are no cost of a sandbox and would drown it: both
 * readings are taken without. */
static void read_memory(const struct crowd_daemon *d, struct host_memory *ret)
{
    _cleanup_fd_ int fd = -1;

    pause_ms(IDLE_QUIET_MS);
    sync();
    fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)!write(fd, "2", 1);
    host_memory(d->pid, ret);
}

static void exec_each(struct client *c, struct crowd_idle *idle)
{
    struct http h = { .fd = -1 };
    int r = reconnect(c, &h);

    for (size_t i = 0; r >= 0 && i < c->ids.n; i++) {
        struct err err = ERR_INIT;
        double start = now_us();

        if (warren_true(&h, c->ids.id[i], &err) < 0) {
            failed(c, &err);
            r = reconnect(c, &h);
        } else {
            sample_add(&idle->exec, now_us() - start);
            idle->alive++;
        }
    }
    http_close(&h);
}

void crowd_idle(const struct crowd_daemon *d, struct crowd_idle *idle)
{
    struct client *clients = make_clients(d, IDLE_CLIENTS);
    struct host_memory before, after;
    double start, n;

    read_memory(d, &before);
    for (unsigned i = 0; i < IDLE_CLIENTS; i++)
        clients[i].wanted = idle->wanted / IDLE_CLIENTS + (i < idle->wanted % IDLE_CLIENTS);
    start = now_us();
    run_clients(clients, IDLE_CLIENTS, idle_create);
    idle->create_s = (now_us() - start) / 1e6;

    for (unsigned i = 0; i < IDLE_CLIENTS; i++)
        exec_each(&clients[i], idle);
    read_memory(d, &after);
    n = idle->alive ? idle->alive : 1;
    idle->pss_kb = (double)(after.tree_pss_kb - before.tree_pss_kb) / n;
    idle->kernel_kb = (double)(after.kernel_kb - before.kernel_kb) / n;
    idle->available_kb = (double)(before.available_kb - after.available_kb) / n;

    run_clients(clients, IDLE_CLIENTS, idle_delete);
    for (unsigned i = 0; i < IDLE_CLIENTS; i++) {
        if (!idle->failures && clients[i].failures)
            (void)snprintf(idle->first_failure, sizeof(idle->first_failure), "%s",
                           clients[i].first_failure);
        idle->failures += clients[i].failures;
    }
    free_clients(clients, IDLE_CLIENTS);
}
