#include "front/e2b/snapshots.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

#define MARK "warren.e2b.snapshot" /* its value is the name, or empty */
#define PAGE_MAX 100

static const char *name_of(const struct checkpoint *c)
{
    return pairs_get(&c->metadata, MARK);
}

/* "team/name:tag" without team and tag. */
static int bare(const struct request *req, const char *text, char out[NAME_MAX_LEN + 1])
{
    const char *slash = strchr(text, '/');
    if (slash && (strlen(req->owner) != (size_t)(slash - text) ||
                  strncmp(text, req->owner, (size_t)(slash - text)) != 0))
        return -ENOENT;
    text = slash ? slash + 1 : text;
    size_t n = strcspn(text, ":");
    if (n == 0 || n > NAME_MAX_LEN)
        return -ENOENT;
    memcpy(out, text, n);
    out[n] = '\0';
    return 0;
}

int e2b_snapshot_find(struct request *req, const char *text, struct checkpoint *ret_c)
{
    char who[NAME_MAX_LEN + 1], id[ID_SIZE] = "";
    struct checkpoint *list = NULL;
    size_t n = 0;
    if (bare(req, text, who) < 0 ||
        checkpoint_list(req->core, req->owner, NULL, &list, &n, NULL) < 0)
        return -ENOENT;
    for (size_t i = n; i-- > 0 && !id[0];) { /* the newest of a name */
        const char *name = name_of(&list[i]);
        if (name && (strcmp(list[i].id, who) == 0 || strcmp(name, who) == 0))
            memcpy(id, list[i].id, ID_SIZE);
    }
    checkpoint_list_free(list, n);
    return id[0] ? checkpoint_get(req->core, req->owner, NULL, id, ret_c, NULL) : -ENOENT;
}

/* Adds to what the sandbox had in its environment. */
static int merge_env(const struct sandbox *s, const struct sandbox_spec *asked,
                     struct pairs *ret_env)
{
    int r = pairs_copy(&s->spec.env, ret_env);
    for (size_t i = 0; r >= 0 && i < asked->env.n; i++)
        r = pairs_add(ret_env, asked->env.names[i], asked->env.values[i]);
    return r;
}

int e2b_snapshot_start(struct request *req, const struct checkpoint *c,
                       const struct sandbox_spec *spec, struct sandbox *ret_s, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    _cleanup_(pairs_done) struct pairs env = { 0 };
    const unsigned changes = CHANGE_METADATA | CHANGE_ENV | CHANGE_TIMEOUT | CHANGE_ON_TIMEOUT |
                             CHANGE_WAKE | CHANGE_NETWORK | CHANGE_PREVIEW | CHANGE_NOTES;
    int r = checkpoint_start(req->core, req->owner, NULL, c->id, NULL, true, &s, err);
    if (r < 0)
        return r;
    struct sandbox_spec want = *spec;
    r = merge_env(&s, spec, &env);
    want.env = env; /* lent */
    if (r < 0)
        r = err_set(err, -r, "cannot allocate a sandbox");
    else
        r = sandbox_update(req->core, req->owner, s.id, &want, changes, ret_s, err);
    if (r < 0)
        (void)sandbox_delete(req->core, req->owner, s.id, NULL);
    return r;
}

/* ---- making, listing, removing ---- */

static void put_snapshot(struct jout *j, const struct request *req, const struct checkpoint *c)
{
    const char *name = name_of(c);
    char full[OWNER_MAX + NAME_MAX_LEN + 16];
    jout_open(j, NULL, '{');
    jout_str(j, "snapshotID", c->id);
    jout_open(j, "names", '[');
    if (name && *name) {
        (void)snprintf(full, sizeof(full), "%s/%s:default", req->owner, name);
        jout_str(j, NULL, full);
    }
    jout_close(j, ']');
    jout_close(j, '}');
}

int e2b_sandbox_snapshot(struct request *req, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    _cleanup_(checkpoint_done) struct checkpoint c = { 0 };
    _cleanup_(pairs_done) struct pairs metadata = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    char name[NAME_MAX_LEN + 1] = "";
    int r = e2b_read_optional(req, &object, err);
    if (r < 0)
        return r;
    const char *asked = json_string_value(json_object_get(object, "name"));
    if (asked && (bare(req, asked, name) < 0 || !name_valid(name)))
        return err_fail(err, FAIL_INVALID_FIELD, "'name' is not a name for a snapshot");
    if (pairs_add(&metadata, MARK, name) < 0)
        return err_set(err, ENOMEM, "cannot allocate a snapshot");
    const struct checkpoint_ask ask = { .reason = "asked", .metadata = &metadata, .memory = true };
    r = checkpoint_create(req->core, req->owner, req->args[0], &ask, &c, err);
    if (r < 0)
        return e2b_failed(err, r, req->args[0]);
    put_snapshot(&j, req, &c);
    return reply_json(req, 201, &j);
}

static bool listed(const struct checkpoint *c, const char *sandbox, const char *name)
{
    const char *own = name_of(c);
    return own && (!sandbox || strcmp(c->sandbox, sandbox) == 0) &&
           (!name || strcmp(own, name) == 0);
}

int e2b_snapshots(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct checkpoint *list = NULL;
    const char *sandbox = uri_param(&req->uri, "sandboxID"), *last = NULL;
    const char *after = uri_param(&req->uri, "nextToken"), *asked = uri_param(&req->uri, "name");
    char name[NAME_MAX_LEN + 1] = "";
    uint64_t limit = PAGE_MAX, given = 0;
    size_t n = 0;
    if (asked && bare(req, asked, name) < 0)
        (void)snprintf(name, sizeof(name), "/"); /* nobody's */
    int r = request_param_u64(req, "limit", 1, PAGE_MAX, &limit, err);
    if (r >= 0)
        r = checkpoint_list(req->core, req->owner, NULL, &list, &n, err);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '[');
    for (size_t i = n; i-- > 0;) { /* the newest first */
        if (after) {
            if (strcmp(list[i].id, after) == 0)
                after = NULL;
            continue;
        }
        if (!listed(&list[i], sandbox, asked ? name : NULL))
            continue;
        if (given == limit) {
            reply_header(req, "X-Next-Token", "%s", last);
            break;
        }
        put_snapshot(&j, req, &list[i]);
        last = list[i].id;
        given++;
    }
    jout_close(&j, ']');
    checkpoint_list_free(list, n);
    return reply_json(req, 200, &j);
}

/* ---- copies ---- */

static int read_fork(struct request *req, int64_t *ret_seconds, int64_t *ret_count, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    int r = e2b_read_optional(req, &object, err);
    if (r >= 0)
        r = e2b_read_seconds(object, "timeout", ret_seconds, err);
    if (r >= 0)
        r = e2b_read_seconds(object, "count", ret_count, err);
    if (r >= 0 && *ret_seconds <= 0)
        return err_fail(err, FAIL_INVALID_FIELD, "Timeout must be greater than 0");
    if (r >= 0 && (*ret_count < 1 || *ret_count > CHECKPOINT_FORKS_MAX))
        return err_fail(err, FAIL_INVALID_FIELD, "count must be 1 to %d", CHECKPOINT_FORKS_MAX);
    return r;
}

static void put_copy(struct jout *j, struct request *req, const struct sandbox *s, int64_t seconds)
{
    _cleanup_(sandbox_spec_done) struct sandbox_spec spec;
    struct sandbox after = { 0 };
    sandbox_spec_init(&spec);
    spec.timeout_ms = seconds * 1000;
    jout_open(j, NULL, '{');
    jout_open(j, "sandbox", '{');
    e2b_put_sandbox(j, req, s);
    jout_close(j, '}');
    jout_close(j, '}');
    (void)sandbox_update(req->core, req->owner, s->id, &spec, CHANGE_TIMEOUT, &after, NULL);
    sandbox_done(&after);
}

int e2b_sandbox_fork(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct sandbox *made = NULL;
    int64_t seconds = TIMEOUT_V1_S, count = 1;
    int r = read_fork(req, &seconds, &count, err);
    if (r < 0)
        return r;
    r = checkpoint_copies(req->core, req->owner, req->args[0], (unsigned)count, &made, err);
    if (r < 0)
        return e2b_failed(err, r, req->args[0]);
    jout_open(&j, NULL, '[');
    for (int64_t i = 0; i < count; i++) {
        put_copy(&j, req, &made[i], seconds);
        sandbox_done(&made[i]);
    }
    free(made);
    jout_close(&j, ']');
    return reply_json(req, 201, &j);
}
