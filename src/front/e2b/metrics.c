/* What sandboxes use, as curves: of one, of several, of a team. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/samples.h"
#include "front/e2b/e2b.h"

#define IDS_MAX 100
#define STEPS 60
#define HOUR_MS (3600 * 1000ll)
#define RECORDS_MAX 1000 /* sandboxes that a team's curve is drawn from: the newest */
#define SECONDS_MAX 9999999999ull

static void put_sample(struct jout *j, const char *key, const struct sandbox *s,
                       const struct sample *one)
{
    uint64_t span_us = one->span_ms > 0 ? (uint64_t)one->span_ms * 1000 : 1000;
    jout_open(j, key, '{');
    jout_time(j, "timestamp", one->at_ms);
    jout_int(j, "timestampUnix", one->at_ms / 1000);
    jout_uint(j, "cpuCount", (s->spec.cpu_millis + 999) / 1000);
    jout_thousandths(j, "cpuUsedPct", one->cpu_us * 100000 / span_us);
    jout_uint(j, "memUsed", one->memory_bytes);
    jout_uint(j, "memTotal", s->spec.memory_bytes);
    jout_uint(j, "memCache", 0);
    jout_uint(j, "diskUsed", one->disk_bytes);
    jout_uint(j, "diskTotal", s->spec.disk_bytes);
    jout_close(j, '}');
}

/* `start` and `end`, in seconds; what is not given is as far as there is. */
static int read_span(struct request *req, int64_t *io_from_ms, int64_t *io_to_ms, struct err *err)
{
    uint64_t start, end;
    int r = request_param_u64(req, "start", 0, SECONDS_MAX, &start, err);
    if (r > 0)
        *io_from_ms = (int64_t)start * 1000;
    if (r >= 0)
        r = request_param_u64(req, "end", 0, SECONDS_MAX, &end, err);
    if (r > 0)
        *io_to_ms = (int64_t)end * 1000 + 999;
    if (r >= 0 && *io_from_ms > *io_to_ms)
        return err_fail(err, FAIL_INVALID_QUERY, "start must not be after end");
    return r < 0 ? r : 0;
}

int e2b_sandbox_metrics(struct request *req, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    _cleanup_free_ struct sample *items = NULL;
    struct jout j = JOUT_INIT(&b);
    int64_t from_ms = 0, to_ms = INT64_MAX;
    size_t n = 0;

    int r = read_span(req, &from_ms, &to_ms, err);
    if (r < 0)
        return r;
    r = sandbox_get(req->core, req->owner, req->args[0], &s, err);
    if (r >= 0)
        r = sandbox_samples(req->core, req->owner, s.id, from_ms, to_ms, &items, &n, err);
    if (r < 0)
        return e2b_failed(err, r, req->args[0]);
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < n; i++)
        put_sample(&j, NULL, &s, &items[i]);
    jout_close(&j, ']');
    return reply_json(req, 200, &j);
}

/* The newest of one; a sandbox that is not there is left out. */
static void put_newest(struct request *req, struct jout *j, const char *id)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    _cleanup_free_ struct sample *items = NULL;
    size_t n = 0;
    if (!id_valid(id) || sandbox_get(req->core, req->owner, id, &s, NULL) < 0 ||
        sandbox_samples(req->core, req->owner, s.id, 0, INT64_MAX, &items, &n, NULL) < 0 || n == 0)
        return;
    put_sample(j, s.id, &s, &items[n - 1]);
}

int e2b_sandboxes_metrics(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    size_t n = 0;
    jout_open(&j, NULL, '{');
    jout_open(&j, "sandboxes", '{');
    for (size_t i = 0; i < req->uri.nparams; i++) {
        const char *text = req->uri.params[i].value;
        if (strcmp(req->uri.params[i].name, "sandbox_ids") != 0)
            continue;
        while (*text) {
            char id[ID_SIZE];
            size_t len = strcspn(text, ",");
            if (++n > IDS_MAX)
                return err_fail(err, FAIL_INVALID_QUERY, "over %d sandbox_ids", IDS_MAX);
            if (len < sizeof(id)) {
                memcpy(id, text, len);
                id[len] = '\0';
                put_newest(req, &j, id);
            }
            text += len + (text[len] == ',');
        }
    }
    jout_close(&j, '}');
    jout_close(&j, '}');
    if (n == 0)
        return err_fail(err, FAIL_INVALID_QUERY, "sandbox_ids is required");
    return reply_json(req, 200, &j);
}

/* ---- a team ---- */

/* A team's sandboxes over time, out of the records of when each was there. */
struct curve {
    int64_t from_ms, step_ms;
    uint64_t running[STEPS], started[STEPS];
};

static void count(struct curve *c, const struct sandbox *s)
{
    int64_t began = s->started_ms ? s->started_ms : s->created_ms;
    int64_t ended = s->ended_ms ? s->ended_ms : s->stopped_ms ? s->stopped_ms : INT64_MAX;
    for (size_t i = 0; i < STEPS; i++) {
        int64_t from = c->from_ms + (int64_t)i * c->step_ms, to = from + c->step_ms;
        c->running[i] += began < to && ended >= from;
        c->started[i] += s->created_ms >= from && s->created_ms < to;
    }
}

static int read_curve(struct request *req, struct curve *c, struct err *err)
{
    _cleanup_(sandbox_list_done) struct sandbox_list found = { 0 };
    int64_t to_ms = clock_now_ms(), from_ms = to_ms - HOUR_MS;
    if (strcmp(req->args[0], req->owner) != 0)
        return err_fail(err, FAIL_FORBIDDEN, "this key is of another team");
    int r = read_span(req, &from_ms, &to_ms, err);
    if (r < 0)
        return r;
    *c = (struct curve){ .from_ms = from_ms, .step_ms = (to_ms - from_ms) / STEPS + 1 };
    struct sandbox_filter filter = { .limit = RECORDS_MAX, .states = ~0u };
    r = sandbox_list(req->core, req->owner, &filter, &found, err);
    for (size_t i = 0; r >= 0 && i < found.n; i++)
        count(c, &found.items[i]);
    return r;
}

static int64_t time_of(const struct curve *c, size_t i)
{
    return c->from_ms + (int64_t)i * c->step_ms;
}

static uint64_t rate_of(const struct curve *c, size_t i) /* thousandths a second */
{
    return c->started[i] * 1000000 / (uint64_t)c->step_ms;
}

int e2b_team_metrics(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(64 * 1024);
    struct jout j = JOUT_INIT(&b);
    struct curve c = { 0 };
    int r = read_curve(req, &c, err);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < STEPS; i++) {
        jout_open(&j, NULL, '{');
        jout_time(&j, "timestamp", time_of(&c, i));
        jout_int(&j, "timestampUnix", time_of(&c, i) / 1000);
        jout_uint(&j, "concurrentSandboxes", c.running[i]);
        jout_thousandths(&j, "sandboxStartRate", rate_of(&c, i));
        jout_close(&j, '}');
    }
    jout_close(&j, ']');
    return reply_json(req, 200, &j);
}

int e2b_team_metrics_max(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    struct curve c = { 0 };
    const char *metric = uri_param(&req->uri, "metric");
    bool rate = metric && strcmp(metric, "sandbox_start_rate") == 0;
    if (!metric || (!rate && strcmp(metric, "concurrent_sandboxes") != 0))
        return err_fail(err, FAIL_INVALID_QUERY,
                        "metric must be concurrent_sandboxes or sandbox_start_rate");
    int r = read_curve(req, &c, err);
    if (r < 0)
        return r;
    size_t at = 0;
    for (size_t i = 0; i < STEPS; i++)
        if (rate ? c.started[i] > c.started[at] : c.running[i] > c.running[at])
            at = i;
    jout_open(&j, NULL, '{');
    jout_time(&j, "timestamp", time_of(&c, at));
    jout_int(&j, "timestampUnix", time_of(&c, at) / 1000);
    jout_thousandths(&j, "value", rate ? rate_of(&c, at) : c.running[at] * 1000);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

int e2b_teams(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    jout_open(&j, NULL, '[');
    jout_open(&j, NULL, '{');
    jout_str(&j, "teamID", req->owner);
    jout_str(&j, "name", req->owner);
    jout_str(&j, "apiKey", ""); /* a key is shown once, when it is made */
    jout_bool(&j, "isDefault", true);
    jout_close(&j, '}');
    jout_close(&j, ']');
    return reply_json(req, 200, &j);
}
