#include "front/http/metrics.h"

#include <inttypes.h>

static const struct {
    int64_t us;
    const char *le; /* in seconds */
} bounds[METRICS_BUCKETS] = {
    { 500, "0.0005" },  { 1000, "0.001" },    { 2000, "0.002" }, { 5000, "0.005" },
    { 10000, "0.01" },  { 20000, "0.02" },    { 50000, "0.05" }, { 100000, "0.1" },
    { 250000, "0.25" }, { 500000, "0.5" },    { 1000000, "1" },  { 5000000, "5" },
    { 30000000, "30" }, { 300000000, "300" },
};

void histogram_add(struct histogram *h, int64_t us)
{
    size_t i = 0;
    while (i < METRICS_BUCKETS && us > bounds[i].us)
        i++;
    atomic_fetch_add_explicit(&h->buckets[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum_us, (uint64_t)us, memory_order_relaxed);
}

void metrics_request(struct metrics *m, unsigned status)
{
    unsigned class = status / 100 < ARRAY_LEN(m->requests) ? status / 100 : 0;
    atomic_fetch_add_explicit(&m->requests[class], 1, memory_order_relaxed);
}

static int put_histogram(struct buf *out, struct histogram *h, const char *name, const char *help)
{
    uint64_t total = 0;
    int r = buf_printf(out, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name);
    for (size_t i = 0; i <= METRICS_BUCKETS && r >= 0; i++) {
        total += atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
        r = buf_printf(out, "%s_bucket{le=\"%s\"} %" PRIu64 "\n", name,
                       i < METRICS_BUCKETS ? bounds[i].le : "+Inf", total);
    }
    uint64_t us = atomic_load_explicit(&h->sum_us, memory_order_relaxed);
    if (r >= 0)
        r = buf_printf(out, "%s_sum %" PRIu64 ".%06" PRIu64 "\n%s_count %" PRIu64 "\n", name,
                       us / 1000000, us % 1000000, name, total);
    return r;
}

static int put_one(struct buf *out, const char *name, const char *type, const char *help,
                   uint64_t value)
{
    return buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 "\n", name, help, name, type,
                      name, value);
}

static int put_requests(struct metrics *m, struct buf *out)
{
    int r = buf_puts(out, "# HELP warren_http_requests_total Requests answered, by status class.\n"
                          "# TYPE warren_http_requests_total counter\n");
    for (unsigned i = 0; i < ARRAY_LEN(m->requests) && r >= 0; i++) {
        if (i == 1)
            continue; /* 1xx is never a final answer */
        char name[4] = { (char)('0' + i), 'x', 'x', '\0' };
        r = buf_printf(out, "warren_http_requests_total{class=\"%s\"} %" PRIu64 "\n",
                       i ? name : "cut",
                       atomic_load_explicit(&m->requests[i], memory_order_relaxed));
    }
    return r;
}

int metrics_text(struct metrics *m, struct core *core, struct buf *out)
{
    struct core_counts c;
    core_counts(core, &c);
    const struct {
        const char *name, *type, *help;
        uint64_t value;
    } rows[] = {
        { "warren_sandbox_creates_total", "counter", "Sandboxes made.", c.creates },
        { "warren_sandbox_create_failures_total", "counter", "Sandboxes that could not be made.",
          c.create_failures },
        { "warren_sandbox_deletes_total", "counter", "Sandboxes deleted.", c.deletes },
        { "warren_sandbox_ooms_total", "counter", "Commands ended by a memory limit.", c.ooms },
        { "warren_execs_total", "counter", "Commands started.", c.execs },
        { "warren_exec_failures_total", "counter", "Commands that could not be started.",
          c.exec_failures },
        { "warren_sandboxes_running", "gauge", "Sandboxes running now.", c.running },
        { "warren_sandboxes_stopped", "gauge", "Sandboxes stopped, their files kept.", c.stopped },
        { "warren_pool_ready", "gauge", "Blank cells ready to become sandboxes.", c.pool_ready },
        { "warren_http_requests_in_flight", "gauge", "Requests at work, streams included.",
          (uint64_t)atomic_load_explicit(&m->in_flight, memory_order_relaxed) },
    };
    int r = put_requests(m, out);
    for (size_t i = 0; i < ARRAY_LEN(rows) && r >= 0; i++)
        r = put_one(out, rows[i].name, rows[i].type, rows[i].help, rows[i].value);
    if (r >= 0)
        r = put_histogram(out, &m->create, "warren_create_seconds",
                          "Time to make a sandbox, until it runs.");
    if (r >= 0)
        r = put_histogram(out, &m->exec, "warren_exec_seconds",
                          "Time of a command that was run and waited for.");
    return r;
}
