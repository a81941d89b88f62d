#include "front/http/metrics.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "core/sandbox.h"
#include "front/http/metrics_private.h"
#include "front/http/request.h"

static const struct {
    int64_t us;
    const char *le; /* in seconds */
} bounds[METRICS_BUCKETS] = {
    { 500, "0.0005" },  { 1000, "0.001" },    { 2000, "0.002" }, { 5000, "0.005" },
    { 10000, "0.01" },  { 20000, "0.02" },    { 50000, "0.05" }, { 100000, "0.1" },
    { 250000, "0.25" }, { 500000, "0.5" },    { 1000000, "1" },  { 5000000, "5" },
    { 30000000, "30" }, { 300000000, "300" },
};

int metrics_init(struct metrics *m, const struct dialect *const *dialects,
                 const _Atomic uint64_t *keeper_restarts, struct err *err)
{
    m->by_route = calloc(METRICS_DIALECTS_MAX, sizeof(struct histogram *));
    for (size_t d = 0; m->by_route && dialects[d]; d++) {
        assert(d < METRICS_DIALECTS_MAX);
        m->by_route[d] = calloc(dialects[d]->nroutes, sizeof(*m->by_route[d]));
        if (!m->by_route[d]) {
            metrics_done(m);
            break;
        }
    }
    if (!m->by_route)
        return err_set(err, ENOMEM, "cannot allocate the metrics");
    m->dialects = dialects;
    m->keeper_restarts = keeper_restarts;
    return 0;
}

void metrics_done(struct metrics *m)
{
    for (size_t d = 0; m->by_route && d < METRICS_DIALECTS_MAX; d++)
        free(m->by_route[d]);
    free(m->by_route);
    m->by_route = NULL;
}

void histogram_add(struct histogram *h, int64_t us)
{
    size_t i = 0;
    while (i < METRICS_BUCKETS && us > bounds[i].us)
        i++;
    atomic_fetch_add_explicit(&h->buckets[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum_us, (uint64_t)us, memory_order_relaxed);
}

void metrics_request(struct metrics *m, const struct dialect *dialect, const struct route *route,
                     unsigned status, int64_t us)
{
    size_t d = 0;
    while (m->dialects[d] != dialect)
        d++;
    unsigned class = status / 100 < ARRAY_LEN(m->requests[d]) ? status / 100 : 0;
    atomic_fetch_add_explicit(&m->requests[d][class], 1, memory_order_relaxed);
    bool listed = route >= dialect->routes && route < dialect->routes + dialect->nroutes;
    if (listed && status >= 200 && status < 400)
        histogram_add(&m->by_route[d][route - dialect->routes], us);
}

void metrics_failure(struct metrics *m, enum failure failure)
{
    failure = failure_is_told(failure) ? failure : FAIL_NONE;
    atomic_fetch_add_explicit(&m->failures[failure], 1, memory_order_relaxed);
}

/* ---- the text ---- */

struct tally { /* one or more histograms, read once */
    uint64_t buckets[METRICS_BUCKETS + 1], sum_us, count;
};

static void tally_add(struct tally *t, struct histogram *h)
{
    for (size_t i = 0; i <= METRICS_BUCKETS; i++) {
        uint64_t n = atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
        t->buckets[i] += n;
        t->count += n;
    }
    t->sum_us += atomic_load_explicit(&h->sum_us, memory_order_relaxed);
}

int metrics_put_head(struct buf *out, const char *name, const char *type, const char *help)
{
    return buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

int metrics_put(struct buf *out, const struct metric *rows, size_t n)
{
    int r = 0;
    for (size_t i = 0; i < n && r >= 0; i++) {
        const struct metric *m = &rows[i];
        if (i == 0 || strcmp(m->name, rows[i - 1].name) != 0)
            r = metrics_put_head(out, m->name, m->type, m->help);
        if (r >= 0)
            r = buf_printf(out, m->labels ? "%s{%s} %" PRIu64 "\n" : "%s%s %" PRIu64 "\n", m->name,
                           m->labels ? m->labels : "", m->value);
    }
    return r;
}

static int put_tally(struct buf *out, const struct tally *t, const char *name, const char *labels)
{
    uint64_t total = 0;
    int r = 0;
    for (size_t i = 0; i <= METRICS_BUCKETS && r >= 0; i++) {
        total += t->buckets[i];
        r = buf_printf(out, "%s_bucket{%s,le=\"%s\"} %" PRIu64 "\n", name, labels,
                       i < METRICS_BUCKETS ? bounds[i].le : "+Inf", total);
    }
    if (r >= 0)
        r = buf_printf(out, "%s_sum{%s} %" PRIu64 ".%06" PRIu64 "\n%s_count{%s} %" PRIu64 "\n",
                       name, labels, t->sum_us / 1000000, t->sum_us % 1000000, name, labels,
                       t->count);
    return r;
}

static void tally_operation(struct metrics *m, size_t d, const char *name, struct tally *t)
{
    const struct dialect *dialect = m->dialects[d];
    for (size_t k = 0; k < dialect->noperations; k++)
        for (size_t i = 0; i < dialect->nroutes; i++)
            if (strcmp(dialect->operations[k].name, name) == 0 &&
                strcmp(dialect->operations[k].method, dialect->routes[i].method) == 0 &&
                strcmp(dialect->operations[k].pattern, dialect->routes[i].pattern) == 0)
                tally_add(t, &m->by_route[d][i]);
}

static int put_operations_of(struct metrics *m, size_t d, const char *name, struct buf *out)
{
    const struct operation *all = m->dialects[d]->operations;
    int r = 0;
    for (size_t i = 0; i < m->dialects[d]->noperations && r >= 0; i++) {
        char labels[96];
        struct tally t = { 0 };
        if (i > 0 && strcmp(all[i].name, all[i - 1].name) == 0)
            continue;
        (void)snprintf(labels, sizeof(labels), "dialect=\"%s\",operation=\"%s\"",
                       m->dialects[d]->name, all[i].name);
        tally_operation(m, d, all[i].name, &t);
        r = put_tally(out, &t, name, labels);
    }
    return r;
}

static int put_operations(struct metrics *m, struct buf *out)
{
    static const char name[] = "warren_operation_seconds";
    int r = metrics_put_head(out, name, "histogram", "Time of operations that succeeded.");
    for (size_t d = 0; m->dialects[d] && r >= 0; d++)
        r = put_operations_of(m, d, name, out);
    return r;
}

/* Only of routes that were used: there are many of them, and most daemons use few. */
static int put_routes_of(struct metrics *m, size_t d, const char *name, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; i < m->dialects[d]->nroutes && r >= 0; i++) {
        const struct route *route = &m->dialects[d]->routes[i];
        char labels[192];
        struct tally t = { 0 };
        tally_add(&t, &m->by_route[d][i]);
        if (t.count == 0)
            continue;
        (void)snprintf(labels, sizeof(labels), "dialect=\"%s\",method=\"%s\",route=\"%s\"",
                       m->dialects[d]->name, route->method, route->pattern);
        r = put_tally(out, &t, name, labels);
    }
    return r;
}

static int put_routes(struct metrics *m, struct buf *out)
{
    static const char name[] = "warren_http_request_seconds";
    int r = metrics_put_head(out, name, "histogram",
                             "Time of requests that succeeded, streams until their end.");
    for (size_t d = 0; m->dialects[d] && r >= 0; d++)
        r = put_routes_of(m, d, name, out);
    return r;
}

static int put_requests_of(struct metrics *m, size_t d, const char *name, struct buf *out)
{
    int r = 0;
    for (unsigned i = 0; i < ARRAY_LEN(m->requests[d]) && r >= 0; i++) {
        if (i == 1)
            continue; /* 1xx is never a final answer */
        char class[4] = { (char)('0' + i), 'x', 'x', '\0' };
        r = buf_printf(out, "%s{dialect=\"%s\",class=\"%s\"} %" PRIu64 "\n", name,
                       m->dialects[d]->name, i ? class : "cut",
                       atomic_load_explicit(&m->requests[d][i], memory_order_relaxed));
    }
    return r;
}

static int put_requests(struct metrics *m, struct buf *out)
{
    static const char name[] = "warren_http_requests_total";
    int r = metrics_put_head(out, name, "counter",
                             "Requests answered, by family of clients and status class.");
    for (size_t d = 0; m->dialects[d] && r >= 0; d++)
        r = put_requests_of(m, d, name, out);
    return r;
}

static int put_failures(struct metrics *m, struct buf *out)
{
    static const char name[] = "warren_errors_total";
    int r = metrics_put_head(out, name, "counter", "Requests refused or failed, by error code.");
    for (enum failure f = FAIL_NONE; r >= 0 && f < FAILURES_END; f++)
        if (failure_is_told(f))
            r = buf_printf(out, "%s{code=\"%s\"} %" PRIu64 "\n", name, failure_name(f),
                           atomic_load_explicit(&m->failures[f], memory_order_relaxed));
    return r;
}

static int put_states(const struct core_counts *c, struct buf *out)
{
    static const char name[] = "warren_sandboxes";
    int r = metrics_put_head(out, name, "gauge", "Sandboxes there are now, by state.");
    for (int s = 0; s < SANDBOX_GONE && r >= 0; s++)
        r = buf_printf(out, "%s{state=\"%s\"} %u\n", name,
                       sandbox_state_name((enum sandbox_state)s), c->states[s]);
    return r;
}

static int put_numbers(struct metrics *m, const struct core_counts *c,
                       const struct connections_counts *connections, struct buf *out)
{
    const struct metric rows[] = {
        { "warren_sandbox_creates_total", "counter", "Sandboxes made.", NULL, c->creates },
        { "warren_sandbox_creates_warm_total", "counter",
          "Sandboxes made from a blank cell that was ready.", NULL, c->warm_creates },
        { "warren_sandbox_create_failures_total", "counter", "Sandboxes that could not be made.",
          NULL, c->create_failures },
        { "warren_sandbox_freezes_total", "counter",
          "Times that an idle sandbox's work was frozen.", NULL, c->freezes },
        { "warren_sandbox_deletes_total", "counter", "Sandboxes deleted.", NULL, c->deletes },
        { "warren_sandbox_ooms_total", "counter", "Commands ended by a memory limit.", NULL,
          c->ooms },
        { "warren_builds_total", "counter", "Images built.", NULL, c->builds },
        { "warren_build_failures_total", "counter", "Builds that failed.", NULL,
          c->build_failures },
        { "warren_execs_total", "counter", "Commands started.", NULL, c->execs },
        { "warren_exec_failures_total", "counter", "Commands that could not be started.", NULL,
          c->exec_failures },
        { "warren_pool_ready", "gauge", "Blank cells ready to become sandboxes.", NULL,
          c->pool_ready },
        { "warren_pool_size", "gauge", "Blank cells that shall be kept ready.", NULL,
          c->pool_size },
        { "warren_network_sent_bytes_total", "counter", "Bytes that sandboxes sent out.", NULL,
          c->egress.sent_bytes },
        { "warren_network_received_bytes_total", "counter", "Bytes that came back to them.", NULL,
          c->egress.received_bytes },
        { "warren_network_connections_total", "counter", "Connections out of sandboxes.", NULL,
          c->egress.connections },
        { "warren_network_denied_total", "counter", "Attempts of sandboxes that were refused.",
          NULL, c->egress.denied },
        { "warren_preview_sent_bytes_total", "counter", "Bytes that sandboxes sent to previews.",
          NULL, c->previews.sent_bytes },
        { "warren_preview_received_bytes_total", "counter", "Bytes that previews brought in.", NULL,
          c->previews.received_bytes },
        { "warren_preview_requests_total", "counter", "Requests that previews brought in.", NULL,
          c->previews.connections },
        { "warren_keeper_restarts_total", "counter", "Times the keeper died and was started again.",
          NULL, m->keeper_restarts ? atomic_load(m->keeper_restarts) : 0 },
        { "warren_http_rate_limited_total", "counter", "Requests refused by a key's rate limit.",
          NULL, atomic_load_explicit(&m->rate_limited, memory_order_relaxed) },
        { "warren_http_requests_in_flight", "gauge", "Requests at work, streams included.", NULL,
          (uint64_t)atomic_load_explicit(&m->in_flight, memory_order_relaxed) },
        { "warren_http_connections", "gauge",
          "Open connections of the API, upgraded ones included.", NULL, connections->total },
        { "warren_http_connections_waiting", "gauge", "Those that wait for a request.", NULL,
          connections->waiting },
        { "warren_http_connections_without_key", "gauge",
          "Those that brought no key with their last request, or have made none.", NULL,
          connections->without_key },
        { "warren_http_connections_upgraded", "gauge",
          "Those that became WebSockets to ports of sandboxes.", NULL, connections->upgraded },
    };
    return metrics_put(out, rows, ARRAY_LEN(rows));
}

int metrics_text(struct metrics *m, struct core *core, const struct connections_counts *connections,
                 struct buf *out)
{
    struct core_counts c;
    core_counts(core, &c);
    int r = put_requests(m, out);
    if (r >= 0)
        r = put_failures(m, out);
    if (r >= 0)
        r = put_numbers(m, &c, connections, out);
    if (r >= 0)
        r = put_states(&c, out);
    if (r >= 0)
        r = metrics_put_machine(core, &c, out);
    if (r >= 0)
        r = put_operations(m, out);
    return r < 0 ? r : put_routes(m, out);
}
