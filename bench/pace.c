#include "pace.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "floor.h"
#include "host.h"
#include "warren.h"

#define SETTLE_MS 500       /* between turns: what one left to the kernel is not the next one's */
#define MANY_SETTLE_MS 3000 /* the same for hundreds of sandboxes */
#define MANY_TURN 10        /* lives of ours, then of the floor, then again */
#define THREAD_STACK (256 * 1024)

static char *const echo_argv[] = { (char *)"/bin/echo", (char *)"ready", NULL };

/* A client of the daemon, or with a floor of its own one of the kernel. Threads share nothing. */
struct worker {
    pthread_t thread;
    struct http http;
    struct floor *floor;
    double until_us;
    unsigned lives, failures;
    char first_failure[400];
};

static void note(unsigned *failures, char first[400], const struct err *err)
{
    if (!(*failures)++)
        (void)snprintf(first, 400, "%s", err->msg);
}

static int live_once(struct worker *w, struct err *err)
{
    char id[ID_SIZE] = "";
    double us;
    int r;

    if (w->floor)
        return floor_life(w->floor, echo_argv, &us, err);
    r = warren_create(&w->http, id, err);
    if (r >= 0)
        r = warren_echo(&w->http, id, false, &us, err);
    return r < 0 ? r : warren_delete(&w->http, id, err);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct err err = ERR_INIT;

    while (now_us() < w->until_us && !w->failures)
        if (live_once(w, &err) < 0)
            note(&w->failures, w->first_failure, &err);
        else
            w->lives++;
    return NULL;
}

/* One turn of all; lives a second, and what they took of the processors. */
static double turn(struct worker *workers, const struct pace *pace, double *ret_busy_ms)
{
    double start, busy, took;
    unsigned lives = 0;
    pthread_attr_t attr;

    pause_ms(SETTLE_MS);
    busy = host_busy_ms();
    start = now_us();
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, THREAD_STACK);
    for (unsigned i = 0; i < pace->clients; i++) {
        workers[i].lives = 0;
        workers[i].until_us = start + pace->seconds * 1e6;
        if (pthread_create(&workers[i].thread, &attr, work, &workers[i]) != 0)
            abort();
    }
    for (unsigned i = 0; i < pace->clients; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        lives += workers[i].lives;
    }
    (void)pthread_attr_destroy(&attr);
    took = now_us() - start;
    *ret_busy_ms = lives ? (host_busy_ms() - busy) / lives : 0;
    return lives / took * 1e6;
}

static struct worker *make_workers(const struct crowd_daemon *d, const char *pool, unsigned n,
                                   struct err *err)
{
    struct worker *workers = calloc(n, sizeof(*workers));
    int r = 0;

    if (!workers)
        abort();
    for (unsigned i = 0; i < n; i++)
        workers[i].http.fd = -1;
    for (unsigned i = 0; i < n && r >= 0; i++)
        r = pool ? floor_new(pool, i + 1, &workers[i].floor, err)
                 : http_open(&workers[i].http, d->port, d->key, err);
    return workers;
}

static void free_workers(struct worker *workers, struct pace *pace)
{
    for (unsigned i = 0; i < pace->clients; i++) {
        struct worker *w = &workers[i];

        if (w->failures && !pace->failures)
            (void)snprintf(pace->first_failure, sizeof(pace->first_failure), "%s",
                           w->first_failure);
        pace->failures += w->failures;
        http_close(&w->http);
        floor_free(w->floor);
    }
    free(workers);
}

void pace_run(const struct crowd_daemon *d, const char *pool, struct pace *pace)
{
    struct err err = ERR_INIT;
    struct worker *ours = make_workers(d, NULL, pace->clients, &err);
    struct worker *floors = make_workers(d, pool, pace->clients, &err);

    if (err.code)
        note(&pace->failures, pace->first_failure, &err);
    for (unsigned i = 0; i < pace->turns && !err.code; i++) {
        double busy;

        pace->floors += turn(floors, pace, &busy) / pace->turns;
        pace->floor_busy_ms += busy / pace->turns;
        pace->ours += turn(ours, pace, &busy) / pace->turns;
        pace->our_busy_ms += busy / pace->turns;
    }
    free_workers(ours, pace);
    free_workers(floors, pace);
}

/* ---- many ---- */

static int time_creates(struct http *h, unsigned n, struct sample *times, double *busy_ms,
                        struct err *err)
{
    double busy = host_busy_ms();

    for (unsigned i = 0; i < n; i++) {
        char id[ID_SIZE] = "";
        double start = now_us();
        int r = warren_create(h, id, err);

        if (r < 0)
            return r;
        sample_add(times, now_us() - start);
        r = warren_delete(h, id, err);
        if (r < 0)
            return r;
    }
    *busy_ms += host_busy_ms() - busy;
    return 0;
}

static int time_floors(struct floor *f, unsigned n, struct sample *times, struct err *err)
{
    for (unsigned i = 0; i < n; i++) {
        double us = 0;
        int r = floor_once(f, echo_argv, &us, err);

        if (r < 0)
            return r;
        sample_add(times, us);
    }
    return 0;
}

/* Ours and the floor's in turn, so that whatever else the machine does hits both. */
static int time_both(struct http *h, struct floor *f, unsigned lives, struct sample *ours,
                     struct sample *floors, double *ret_busy_ms, struct err *err)
{
    double busy = 0;
    int r = 0;

    pause_ms(MANY_SETTLE_MS);
    for (unsigned done = 0; r >= 0 && done < lives; done += MANY_TURN) {
        r = time_floors(f, MANY_TURN, floors, err);
        pause_ms(SETTLE_MS);
        if (r >= 0)
            r = time_creates(h, MANY_TURN, ours, &busy, err);
        pause_ms(SETTLE_MS);
    }
    *ret_busy_ms += busy / lives;
    return r;
}

static int grow(struct http *h, struct host_ids *ids, size_t n, struct err *err)
{
    while (ids->n < n) {
        char id[ID_SIZE] = "";
        int r = warren_create(h, id, err);

        if (r < 0)
            return r;
        host_ids_add(ids, id);
    }
    return 0;
}

static int shrink(struct http *h, struct host_ids *ids, size_t n, struct err *err)
{
    int r = 0;

    while (ids->n > n) {
        int gone = warren_delete(h, ids->id[--ids->n], r < 0 ? NULL : err);

        r = r < 0 ? r : gone;
    }
    return r;
}

/* Few, many, and few again: the two halves of the first stand around the second. */
static int time_all(struct http *h, struct floor *f, struct host_ids *ids, struct many *m,
                    struct err *err)
{
    unsigned half = m->lives / 2;
    double first = 0, second = 0;
    int r = grow(h, ids, m->few, err);

    if (r >= 0)
        r = time_both(h, f, half, &m->create_few, &m->floor_few, &first, err);
    if (r >= 0)
        r = grow(h, ids, m->many, err);
    if (r >= 0)
        r = time_both(h, f, m->lives, &m->create_many, &m->floor_many, &m->busy_many_ms, err);
    if (r >= 0)
        r = shrink(h, ids, m->few, err);
    if (r >= 0)
        r = time_both(h, f, half, &m->create_few, &m->floor_few, &second, err);
    m->busy_few_ms = (first + second) / 2;
    return r;
}

void many_run(const struct crowd_daemon *d, const char *pool, struct many *many)
{
    _cleanup_(floor_freep) struct floor *f = NULL;
    struct http h = { .fd = -1 };
    struct err err = ERR_INIT;
    struct host_ids ids = { 0 };
    int r = http_open(&h, d->port, d->key, &err);

    if (r >= 0)
        r = floor_new(pool, 0, &f, &err);
    if (r >= 0)
        r = time_all(&h, f, &ids, many, &err);
    if (r < 0)
        note(&many->failures, many->first_failure, &err);
    (void)shrink(&h, &ids, 0, NULL);
    http_close(&h);
    host_ids_done(&ids);
    sample_sort(&many->create_few);
    sample_sort(&many->create_many);
    sample_sort(&many->floor_few);
    sample_sort(&many->floor_many);
}
