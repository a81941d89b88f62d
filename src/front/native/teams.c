#include <errno.h>
#include <string.h>

#include "core/team.h"
#include "front/http/fields.h"
#include "front/native/native.h"
#include "front/native/page.h"

#define QUOTA_MAX 1e12 /* more than any host has of anything */

/* A quota: a number, or null for none. */
static int as_quota(const json_t *v, const struct field *f, void *at, struct err *err)
{
    double d = json_is_number(v) ? json_number_value(v) : -1;
    bool cpus = f->max != 0;
    if (json_is_null(v)) {
        *(int64_t *)at = QUOTA_NONE;
        return 0;
    }
    if (!(d >= 0 && d <= QUOTA_MAX) || (!cpus && d != (double)(int64_t)d))
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be %s number from 0, or null", f->name,
                        cpus ? "a" : "a whole");
    *(int64_t *)at = (int64_t)(cpus ? d * 1000 + 0.5 : d);
    return 0;
}

struct quotas {
    int64_t v[QUOTA_COUNT];
};

/* In the order of enum quota: bit i of what was seen is quota i. */
static const struct field quota_fields[QUOTA_COUNT] = {
    FIELD(struct quotas, v[QUOTA_SANDBOXES], "sandboxes", as_quota),
    FIELD(struct quotas, v[QUOTA_CPU_MILLIS], "cpus", as_quota, .max = 1),
    FIELD(struct quotas, v[QUOTA_MEMORY_MB], "memory_mb", as_quota),
    FIELD(struct quotas, v[QUOTA_DISK_MB], "disk_mb", as_quota),
};

struct ask {
    char *name;
    struct {
        struct quotas set;
        uint32_t seen;
    } quotas;
};

static int as_quotas(const json_t *v, const struct field *f, void *at, struct err *err)
{
    struct ask *ask = container_of(at, struct ask, quotas);
    if (!json_is_object(v))
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be an object", f->name);
    return fields_decode(v, quota_fields, QUOTA_COUNT, &ask->quotas.set, &ask->quotas.seen, err);
}

static const struct field fields[] = {
    FIELD(struct ask, name, "name", as_text, .max = NAME_MAX_LEN),
    FIELD(struct ask, quotas, "quotas", as_quotas, .null_ok = true),
};

static int read_ask(const struct request *req, struct ask *ask, struct err *err)
{
    for (int q = 0; q < QUOTA_COUNT; q++)
        ask->quotas.set.v[q] = QUOTA_NONE;
    return request_fields(req, fields, ARRAY_LEN(fields), ask, NULL, err);
}

static void put_quotas(struct jout *j, const char *key, const int64_t v[QUOTA_COUNT])
{
    jout_open(j, key, '{');
    for (int q = 0; q < QUOTA_COUNT; q++) {
        if (v[q] == QUOTA_NONE)
            jout_null(j, quota_fields[q].name);
        else if (q == QUOTA_CPU_MILLIS)
            jout_thousandths(j, quota_fields[q].name, (uint64_t)v[q]);
        else
            jout_int(j, quota_fields[q].name, v[q]);
    }
    jout_close(j, '}');
}

/* Print how much of the disk quota each kind of storage uses. */
static void put_disk(struct jout *j, const int64_t mb[STORED_COUNT])
{
    static const char *const names[] = {
        [STORED_SANDBOXES] = "sandboxes_mb", [STORED_VOLUMES] = "volumes_mb",
        [STORED_BUILDS] = "builds_mb",       [STORED_CHECKPOINTS] = "checkpoints_mb",
        [STORED_IMAGES] = "images_mb",       [STORED_UPLOADS] = "uploads_mb",
        [STORED_ACCOUNTS] = "network_mb",    [STORED_COMING] = "coming_mb",
    };
    jout_open(j, "disk", '{');
    for (int i = 0; i < STORED_COUNT; i++)
        jout_int(j, names[i], mb[i]);
    jout_close(j, '}');
}

static void put_team(struct jout *j, const struct team *t)
{
    jout_open(j, NULL, '{');
    jout_str(j, "name", t->name);
    put_quotas(j, "quotas", t->quotas);
    put_quotas(j, "in_use", t->in_use);
    put_disk(j, t->disk_mb);
    jout_time(j, "created_at", t->created_ms);
    jout_close(j, '}');
}

static int reply_team(struct request *req, unsigned status, const struct team *t)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    put_team(&j, t);
    return reply_json(req, status, &j);
}

static int operator_only(const struct request *req, struct err *err)
{
    return req->admin ? 0
                      : err_fail(err, FAIL_FORBIDDEN,
                                 "only the operator looks after teams; ask for an admin's key");
}

int native_team_create(struct request *req, struct err *err)
{
    struct ask ask = { 0 };
    struct team team;
    int r = operator_only(req, err);
    if (r >= 0)
        r = read_ask(req, &ask, err);
    if (r >= 0 && !ask.name)
        r = err_fail(err, FAIL_MISSING_FIELD, "'name' is needed");
    if (r >= 0)
        r = team_create(req->core, ask.name, ask.quotas.set.v, &team, err);
    free(ask.name);
    return r < 0 ? r : reply_team(req, 201, &team);
}

int native_team_list(struct request *req, struct err *err)
{
    _cleanup_(page_done) struct page page = { 0 };
    _cleanup_free_ struct team *teams = NULL;
    size_t n = 0;

    int r = page_read(req, NULL, &page, err);
    if (r >= 0)
        r = team_list(req->core, &teams, &n, err);
    if (r < 0)
        return r;
    page_open(&page, "teams");
    for (size_t i = 0; i < n; i++)
        if ((req->admin || strcmp(teams[i].name, req->owner) == 0) &&
            page_takes(&page, teams[i].name) &&
            team_get(req->core, teams[i].name, &teams[i], NULL) >= 0)
            put_team(&page.json, &teams[i]);
    return page_reply(req, &page);
}

int native_team_get(struct request *req, struct err *err)
{
    struct team team;
    /* To a member, another team is as unknown as one that is not there. */
    if (!req->admin && strcmp(req->args[0], req->owner) != 0)
        return err_fail(err, FAIL_TEAM_NOT_FOUND, "no team '%.64s' here", req->args[0]);
    int r = team_get(req->core, req->args[0], &team, err);
    return r < 0 ? r : reply_team(req, 200, &team);
}

int native_team_update(struct request *req, struct err *err)
{
    struct ask ask = { 0 };
    struct team team;
    int r = operator_only(req, err);
    if (r >= 0)
        r = read_ask(req, &ask, err);
    if (r >= 0 && ask.name)
        r = err_fail(err, FAIL_INVALID_FIELD, "'name' cannot be changed");
    if (r >= 0)
        r = team_update(req->core, req->args[0], ask.quotas.seen, ask.quotas.set.v, &team, err);
    free(ask.name);
    return r < 0 ? r : reply_team(req, 200, &team);
}

int native_team_delete(struct request *req, struct err *err)
{
    int r = operator_only(req, err);
    if (r >= 0)
        r = team_remove(req->core, req->args[0], err);
    return r < 0 ? r : reply_empty(req);
}
