#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/team.h"
#include "core/usage.h"
#include "front/native/native.h"
#include "front/native/paging.h"

#define HOUR_MS (3600 * 1000ll)
#define DAY_MS (24 * HOUR_MS)
#define RANGE_DEFAULT_MS (30 * DAY_MS)
#define STEPS_MAX 10000 /* over a year of hours */

static int read_time(const struct request *req, const char *name, int64_t *at, struct err *err)
{
    const char *text = uri_param(&req->uri, name);
    if (text && clock_parse(text, at) < 0)
        return err_fail(err, FAIL_INVALID_QUERY, "'%s' must be a time such as 2026-01-31T12:00:00Z",
                        name);
    return 0;
}

/* From and to, rounded out to the hours that usage is kept by. */
static int read_range(const struct request *req, struct usage_query *q, struct err *err)
{
    int64_t now = clock_now_ms(), to = now, from = INT64_MIN;
    int r = read_time(req, "to", &to, err);
    if (r >= 0)
        r = read_time(req, "from", &from, err);
    if (r < 0)
        return r;
    if (from == INT64_MIN)
        from = to - RANGE_DEFAULT_MS;
    from = from < 0 ? 0 : from;
    to = to > now + DAY_MS ? now + DAY_MS : to;
    if (from >= to)
        return err_fail(err, FAIL_INVALID_QUERY, "'from' must be before 'to', and not ahead");
    q->from_ms = from / HOUR_MS * HOUR_MS;
    q->to_ms = (to + HOUR_MS - 1) / HOUR_MS * HOUR_MS;
    return 0;
}

static int read_step(const struct request *req, struct usage_query *q, struct err *err)
{
    const char *step = uri_param(&req->uri, "step");
    if (!step)
        return 0;
    if (strcmp(step, "hour") != 0 && strcmp(step, "day") != 0)
        return err_fail(err, FAIL_INVALID_QUERY, "'step' must be hour or day");
    q->step_hours = step[0] == 'h' ? 1 : 24;
    if ((q->to_ms - q->from_ms) / HOUR_MS / q->step_hours > STEPS_MAX)
        return err_fail(err, FAIL_INVALID_QUERY, "that is over %d steps; ask for less", STEPS_MAX);
    return 0;
}

static int read_team(const struct request *req, struct usage_query *q, struct err *err)
{
    const char *team = uri_param(&req->uri, "team");
    q->owner = req->owner;
    if (!team || strcmp(team, req->owner) == 0)
        return 0;
    if (!req->admin)
        return err_fail(err, FAIL_FORBIDDEN, "this key may see what its own team '%s' used",
                        req->owner);
    if (!name_valid(team) || !team_exists(req->core, team))
        return err_fail(err, FAIL_TEAM_NOT_FOUND, "no team '%.64s' here", team);
    q->owner = team;
    return 0;
}

/* By id or name; also one that is gone, whose use is known for longer than its name. */
static int read_sandbox(const struct request *req, struct usage_query *q, char id[ID_SIZE],
                        bool *ret_known, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    const char *who = uri_param(&req->uri, "sandbox");
    *ret_known = true;
    if (!who)
        return 0;
    struct err why = ERR_INIT;
    int r = sandbox_get(req->core, q->owner, who, &s, &why);
    if (r < 0 && !s.id[0] && !id_valid(who)) {
        *err = why;
        return r;
    }
    *ret_known = s.id[0] != '\0';
    memcpy(id, *ret_known ? s.id : who, ID_SIZE);
    q->sandbox = id;
    return 0;
}

static void put_real(struct jout *j, const char *key, double v)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "%.6f", v > 0 ? v : 0);
    jout_raw(j, key, text);
}

static void put_amount(struct jout *j, const struct usage_amount *a)
{
    put_real(j, "cpu_seconds", (double)a->cpu_us / 1e6);
    put_real(j, "memory_gib_seconds", a->memory_gib_s);
    put_real(j, "disk_gib_seconds", a->disk_gib_s);
    jout_uint(j, "network_rx_bytes", a->rx_bytes);
    jout_uint(j, "network_tx_bytes", a->tx_bytes);
}

static void put_rows(struct jout *j, const struct usage_report *report, bool steps,
                     struct paging *page)
{
    jout_open(j, "sandboxes", '[');
    for (size_t i = 0; i < report->n_sandboxes; i++) {
        if (!paging_takes(page, report->sandboxes[i].sandbox))
            continue;
        jout_open(j, NULL, '{');
        jout_str(j, "sandbox", report->sandboxes[i].sandbox);
        jout_str(j, "name", report->sandboxes[i].name);
        put_amount(j, &report->sandboxes[i].amount);
        jout_close(j, '}');
    }
    jout_close(j, ']');
    if (!steps)
        return;
    jout_open(j, "steps", '[');
    for (size_t i = 0; i < report->n_steps; i++) {
        jout_open(j, NULL, '{');
        jout_time(j, "from", report->steps[i].from_ms);
        put_amount(j, &report->steps[i].amount);
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

static int reply_report(struct request *req, const struct usage_query *q,
                        const struct usage_report *report, struct paging *page)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    jout_open(&j, NULL, '{');
    jout_str(&j, "team", q->owner);
    jout_time(&j, "from", q->from_ms);
    jout_time(&j, "to", q->to_ms);
    jout_open(&j, "total", '{');
    put_amount(&j, &report->total);
    jout_close(&j, '}');
    put_rows(&j, report, q->step_hours > 0, page);
    paging_put(page, &j);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

int native_usage(struct request *req, struct err *err)
{
    static const char *const known[] = { "from", "to",    "sandbox", "team",
                                         "step", "limit", "cursor",  NULL };
    _cleanup_(usage_report_done) struct usage_report report = { 0 };
    struct usage_query q = { 0 };
    struct paging page;
    char id[ID_SIZE];
    bool known_here = true;

    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = paging_read(req, &page, err);
    if (r >= 0)
        r = read_range(req, &q, err);
    if (r >= 0)
        r = read_step(req, &q, err);
    if (r >= 0)
        r = read_team(req, &q, err);
    if (r >= 0)
        r = read_sandbox(req, &q, id, &known_here, err);
    if (r < 0)
        return r;
    q.after = page.after;
    q.limit = page.limit + 1; /* one more tells whether there is more */
    r = usage_read(req->core, &q, &report, err);
    if (r >= 0 && !known_here && report.n_sandboxes == 0)
        return err_fail(err, FAIL_SANDBOX_NOT_FOUND, "no sandbox '%s' here", id);
    return r < 0 ? r : reply_report(req, &q, &report, &page);
}
