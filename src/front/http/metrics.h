/* metrics - counts and latency histograms of this daemon, as Prometheus wants them.
 *
 * Counters are atomics with fixed buckets: a measurement is two additions, no lock and no
 * allocation. A route's place in its table is its place here, so every request is measured by the
 * server and no handler has to think of it. What the core counts is asked for when the text is
 * made. Labels come from our own tables only: nothing a client sends becomes one. */
#pragma once
#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"
#include "core/core.h"
#include "front/http/connections.h"
#include "front/http/dialect.h"

#define METRICS_BUCKETS 14
#define METRICS_DIALECTS_MAX 16

struct histogram {
    _Atomic uint64_t buckets[METRICS_BUCKETS + 1]; /* not cumulative; the last is +Inf */
    _Atomic uint64_t sum_us;
};

struct metrics {
    /* of each dialect by status class: [2] is 2xx; [0] cut off before an answer */
    _Atomic uint64_t requests[METRICS_DIALECTS_MAX][6];
    _Atomic int64_t in_flight;
    _Atomic uint64_t rate_limited;
    _Atomic uint64_t failures[FAILURES_END];
    const _Atomic uint64_t *keeper_restarts;
    const struct dialect *const *dialects;
    struct histogram **by_route; /* of each dialect, of each of its routes */
};

/* Keeps dialects and keeper_restarts (NULL: not counted). */
int metrics_init(struct metrics *m, const struct dialect *const *dialects,
                 const _Atomic uint64_t *keeper_restarts, struct err *err);
void metrics_done(struct metrics *m);

void histogram_add(struct histogram *h, int64_t us);
/* An answer, or the end of a stream. route NULL: it led nowhere. */
void metrics_request(struct metrics *m, const struct dialect *dialect, const struct route *route,
                     unsigned status, int64_t us);
void metrics_failure(struct metrics *m, enum failure failure);
int metrics_text(struct metrics *m, struct core *core, const struct connections_counts *connections,
                 struct buf *out);
