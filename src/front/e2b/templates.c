/* Templates as the control plane lists and changes them: all tags of a name are one. */
#include <errno.h>
#include <string.h>

#include "front/e2b/envd.h"
#include "front/e2b/snapshots.h"
#include "front/e2b/templates.h"

#define MIB (1024ull * 1024)
#define PAGE_MAX 100

/* One name with all its tags. */
struct group {
    char name[OWNER_MAX + NAME_MAX_LEN + 1]; /* "team/name" for another team's */
    const struct template *t; /* the default tag, or the first there is; NULL: none is ready */
    const struct template_build *b; /* the newest; NULL: nobody built it */
    size_t n_builds;
    int64_t created_ms, updated_ms;
};

struct groups {
    struct template *templates;
    struct template_build *builds;
    size_t n_templates, n_builds;
    struct group *items;
    size_t n;
};

static void groups_done(struct groups *g)
{
    template_list_free(g->templates, g->n_templates);
    free(g->builds);
    free(g->items);
}

static struct group *group_of(struct groups *g, const char *name)
{
    char bare[OWNER_MAX + NAME_MAX_LEN + 1];
    (void)snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(name, ":"), name);
    for (size_t i = 0; i < g->n; i++)
        if (strcmp(g->items[i].name, bare) == 0)
            return &g->items[i];
    struct group *at = &g->items[g->n++];
    memcpy(at->name, bare, sizeof(bare));
    return at;
}

static int collect(struct request *req, struct groups *g, struct err *err)
{
    int r = template_list(req->core, req->owner, &g->templates, &g->n_templates, err);
    if (r >= 0)
        r = template_build_list(req->core, req->owner, NULL, &g->builds, &g->n_builds, err);
    if (r < 0)
        return r;
    g->items = calloc(g->n_templates + g->n_builds + 1, sizeof(*g->items));
    if (!g->items)
        return err_set(err, ENOMEM, "cannot allocate the templates");
    for (size_t i = 0; i < g->n_templates; i++) { /* by name: "x" before "x:tag" */
        const struct template *t = &g->templates[i];
        struct group *at = group_of(g, t->as);
        if (!at->t)
            at->t = t;
        if (!at->created_ms || t->created_ms < at->created_ms)
            at->created_ms = t->created_ms;
        if (t->updated_ms > at->updated_ms)
            at->updated_ms = t->updated_ms;
    }
    for (size_t i = 0; i < g->n_builds; i++) { /* the newest first */
        const struct template_build *b = &g->builds[i];
        struct group *at = group_of(g, b->template);
        if (!at->b)
            at->b = b;
        at->n_builds++;
        if (!at->created_ms || b->created_ms < at->created_ms)
            at->created_ms = b->created_ms;
        if (b->updated_ms > at->updated_ms)
            at->updated_ms = b->updated_ms;
    }
    return 0;
}

static const char *status_of(const struct template_build *b)
{
    static const char *const names[] = { [BUILD_WAITING] = "waiting",
                                         [BUILD_RUNNING] = "building",
                                         [BUILD_READY] = "ready",
                                         [BUILD_BROKEN] = "error" };
    return b ? names[b->state] : "ready";
}

/* What is common to a list's entry and a lookup: members only. */
static void put_group(struct jout *j, const struct group *g)
{
    jout_str(j, "templateID", g->name);
    jout_bool(j, "public", g->t && g->t->public);
    jout_open(j, "aliases", '[');
    jout_str(j, NULL, g->name);
    jout_close(j, ']');
    jout_open(j, "names", '[');
    jout_str(j, NULL, g->name);
    jout_close(j, ']');
    jout_time(j, "createdAt", g->created_ms);
    jout_time(j, "updatedAt", g->updated_ms);
    jout_null(j, "lastSpawnedAt");
    jout_uint(j, "spawnCount", 0);
}

static void put_limits(struct jout *j, const struct template_build *b, const struct template *t)
{
    struct sandbox_spec usual;
    sandbox_spec_init(&usual);
    const struct sandbox_spec *s = t ? &t->spec : &usual;
    uint32_t millis = b && b->cpu_millis ? b->cpu_millis : s->cpu_millis;
    uint64_t memory = b && b->memory_bytes ? b->memory_bytes : s->memory_bytes;
    uint64_t disk = b && b->disk_bytes > s->disk_bytes ? b->disk_bytes : s->disk_bytes;
    jout_uint(j, "cpuCount", (millis + 999) / 1000);
    jout_uint(j, "memoryMB", memory / MIB);
    jout_uint(j, "diskSizeMB", disk / MIB);
    jout_str(j, "envdVersion", ENVD_VERSION);
    sandbox_spec_done(&usual);
}

static void put_listed(struct jout *j, const struct group *g)
{
    char build[TEMPLATE_BUILD_ID_SIZE] = "";
    if (g->t)
        template_build_of(g->t, build);
    jout_open(j, NULL, '{');
    put_group(j, g);
    jout_str(j, "buildID", g->t || !g->b ? build : g->b->id);
    jout_str(j, "buildStatus", g->t ? "ready" : status_of(g->b));
    put_limits(j, NULL, g->t);
    jout_null(j, "createdBy");
    jout_uint(j, "buildCount", g->n_builds);
    jout_close(j, '}');
}

/* ---- a list ---- */

static int by_name(const void *pa, const void *pb)
{
    const struct group *a = pa, *b = pb;
    return strcmp(a->name, b->name);
}

int e2b_template_list(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(REPLY_MAX);
    _cleanup_(groups_done) struct groups g = { 0 };
    struct jout j = JOUT_INIT(&out);
    const char *after = uri_param(&req->uri, "nextToken"), *last = NULL;
    bool old = strcmp(req->uri.segments[1], "templates") == 0; /* without pages */
    uint64_t limit = PAGE_MAX, shown = 0;
    int r = old ? 0 : request_param_u64(req, "limit", 1, PAGE_MAX, &limit, err);
    if (r >= 0)
        r = collect(req, &g, err);
    if (r < 0)
        return r;
    qsort(g.items, g.n, sizeof(*g.items), by_name);
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < g.n; i++) {
        if (after && strcmp(g.items[i].name, after) <= 0)
            continue;
        if (!old && shown++ == limit) {
            reply_header(req, "X-Next-Token", "%s", last);
            break;
        }
        put_listed(&j, &g.items[i]);
        last = g.items[i].name;
    }
    jout_close(&j, ']');
    return reply_json(req, 200, &j);
}

/* ---- one ---- */

static int not_found(struct err *err, const char *name)
{
    return err_fail(err, FAIL_TEMPLATE_NOT_FOUND, "template '%.128s' not found", name);
}

int e2b_template_get(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(REPLY_MAX);
    _cleanup_(groups_done) struct groups g = { 0 };
    struct jout j = JOUT_INIT(&out);
    struct e2b_name name;
    int r = e2b_name_parse(req, req->args[0], &name, err);
    if (r >= 0)
        r = collect(req, &g, err);
    if (r < 0)
        return r;
    const struct group *at = group_of(&g, name.ref);
    if (!at->t && !at->b)
        return not_found(err, name.ref);
    jout_open(&j, NULL, '{');
    put_group(&j, at);
    jout_open(&j, "builds", '[');
    for (size_t i = 0; i < g.n_builds; i++) {
        const struct template_build *b = &g.builds[i];
        if (strcmp(b->template, at->name) != 0)
            continue;
        jout_open(&j, NULL, '{');
        jout_str(&j, "buildID", b->id);
        jout_str(&j, "status", status_of(b));
        jout_time(&j, "createdAt", b->created_ms);
        jout_time(&j, "updatedAt", b->updated_ms);
        if (b->finished_ms)
            jout_time(&j, "finishedAt", b->finished_ms);
        put_limits(&j, b, at->t);
        jout_close(&j, '}');
    }
    jout_close(&j, ']');
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

/* Is there one by that name, be it only an image? */
int e2b_template_alias(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
    _cleanup_(groups_done) struct groups g = { 0 };
    struct jout j = JOUT_INIT(&out);
    struct e2b_name name;
    struct template t = { 0 };
    struct image image;
    int r = e2b_name_parse(req, req->args[0], &name, err);
    if (r >= 0)
        r = collect(req, &g, err);
    if (r < 0)
        return r;
    const struct group *at = group_of(&g, name.ref);
    bool public = at->t && at->t->public, there = at->t || at->b;
    if (name.tag[0]) {
        char full[TEMPLATE_REF_SIZE];
        (void)snprintf(full, sizeof(full), "%s:%s", name.ref, name.tag);
        there = template_get(req->core, req->owner, full, &t, NULL) >= 0;
        template_done(&t);
    }
    const char *ours = e2b_known_name(req, name.ref);
    if (!there && image_resolve(req->core, req->owner, ours, &image, NULL, NULL) >= 0) {
        there = !name.tag[0] || strcmp(name.tag, TEMPLATE_TAG) == 0;
        public = image.public;
    }
    if (!there)
        return not_found(err, req->args[0]);
    jout_open(&j, NULL, '{');
    jout_str(&j, "templateID", name.ref);
    jout_bool(&j, "public", public);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

int e2b_template_delete(struct request *req, struct err *err)
{
    struct e2b_name name;
    _cleanup_(checkpoint_done) struct checkpoint c = { 0 };
    if (e2b_snapshot_find(req, req->args[0], &c) >= 0) {
        int r = checkpoint_remove(req->core, req->owner, NULL, c.id, err);
        return r < 0 ? r : reply_empty(req);
    }
    int r = e2b_name_own(req, req->args[0], &name, err);
    if (r >= 0)
        r = template_forget(req->core, req->owner, name.name, err);
    if (r == -ENOENT)
        return not_found(err, req->args[0]);
    return r < 0 ? r : reply_empty(req);
}

/* ---- changing it ---- */

static int publish(struct request *req, const struct groups *g, const char *name, bool public,
                   struct err *err)
{
    size_t len = strlen(name), n = 0;
    for (size_t i = 0; i < g->n_templates; i++) {
        struct template *t = &g->templates[i], made = { 0 };
        char rest = strncmp(t->name, name, len) == 0 ? t->name[len] : 'x';
        if ((rest && rest != ':') || strcmp(t->owner, req->owner) != 0)
            continue;
        t->public = public;
        int r = template_put(req->core, t, &made, err);
        template_done(&made);
        if (r < 0)
            return r;
        n++;
    }
    return n ? 0 : not_found(err, name);
}

int e2b_template_patch(struct request *req, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
    _cleanup_(groups_done) struct groups g = { 0 };
    struct jout j = JOUT_INIT(&out);
    struct e2b_name name;
    int r = e2b_name_own(req, req->args[0], &name, err);
    if (r >= 0)
        r = request_json(req, &object, err);
    if (r >= 0)
        r = collect(req, &g, err);
    if (r < 0)
        return r;
    const json_t *v = json_object_get(object, "public");
    if (v && !json_is_null(v) && !json_is_boolean(v))
        return err_fail(err, FAIL_INVALID_FIELD, "'public' must be true or false");
    if (json_is_boolean(v))
        r = publish(req, &g, name.name, json_is_true(v), err);
    else
        r = group_of(&g, name.name)->t ? 0 : not_found(err, name.name);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    jout_open(&j, "names", '[');
    jout_str(&j, NULL, name.name);
    jout_close(&j, ']');
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}
