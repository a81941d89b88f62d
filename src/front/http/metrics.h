/* metrics - counts and latency histograms of this daemon, as Prometheus wants them.
 *
 * Counters are atomics with fixed buckets: a measurement is two additions, no lock and no
 * allocation. What the core counts (creates, execs) is asked for when the text is made. */
#pragma once
#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"
#include "core/core.h"

#define METRICS_BUCKETS 14

struct histogram {
    _Atomic uint64_t buckets[METRICS_BUCKETS + 1]; /* not cumulative; the last is +Inf */
    _Atomic uint64_t sum_us;
};

struct metrics {
    _Atomic uint64_t requests[6]; /* by status class: [2] is 2xx; [0] cut off before an answer */
    _Atomic int64_t in_flight;
    struct histogram create, exec;
};

void histogram_add(struct histogram *h, int64_t us);
void metrics_request(struct metrics *m, unsigned status);
int metrics_text(struct metrics *m, struct core *core, struct buf *out);
