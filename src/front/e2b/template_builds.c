/* Builds of templates: asked for, started, and looked at until they have ended. */
#include <errno.h>
#include <string.h>

#include "front/e2b/templates.h"

#define MIB (1024ull * 1024)
#define PAGE_MAX 100
#define LOGS_MAX 1000
#define CPUS_MAX 4096
#define MEMORY_MIN_MB 128
#define MEMORY_MAX_MB (1024 * 1024)
#define DISK_MAX_MB (16 * 1024 * 1024)

/* ---- asking for one ---- */

static int read_number(const json_t *object, const char *member, json_int_t min, json_int_t max,
                       uint64_t *ret_v, struct err *err)
{
    const json_t *v = json_object_get(object, member);
    if (!v || json_is_null(v))
        return 0;
    json_int_t n = json_integer_value(v);
    if (!json_is_integer(v) || n < min || n > max)
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be a whole number from %lld to %lld",
                        member, (long long)min, (long long)max);
    *ret_v = (uint64_t)n;
    return 0;
}

static int add_tag(struct template_build *b, const char *tag, struct err *err)
{
    for (size_t i = 0; i < b->n_tags; i++)
        if (strcmp(b->tags[i], tag) == 0)
            return 0;
    if (!e2b_tag_valid(tag))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "the tag '%.64s' must be at most %d lower-case letters, digits, '-', '_' "
                        "or '.'",
                        tag, NAME_MAX_LEN);
    if (b->n_tags == TEMPLATE_TAGS_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "a build may have %d tags", TEMPLATE_TAGS_MAX);
    (void)snprintf(b->tags[b->n_tags++], sizeof(b->tags[0]), "%s", tag);
    return 0;
}

static int read_tags(const json_t *object, const struct e2b_name *name, struct template_build *b,
                     struct err *err)
{
    const json_t *list = json_object_get(object, "tags");
    int r = name->tag[0] ? add_tag(b, name->tag, err) : 0;
    if (list && !json_is_null(list) && !json_is_array(list))
        return err_fail(err, FAIL_INVALID_FIELD, "'tags' must be a list of texts");
    for (size_t i = 0; i < json_array_size(list) && r >= 0; i++) {
        const char *tag = json_string_value(json_array_get(list, i));
        r = add_tag(b, tag ? tag : "", err);
    }
    return r >= 0 && b->n_tags == 0 ? add_tag(b, TEMPLATE_TAG, err) : r;
}

static int read_request(struct request *req, struct template_build *b, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    struct e2b_name name;
    uint64_t cpus = 0, memory_mb = 0, disk_mb = 0;
    int r = request_json(req, &object, err);
    if (r < 0)
        return r;
    const char *text = json_string_value(json_object_get(object, "name"));
    if (!text)
        text = json_string_value(json_object_get(object, "alias"));
    r = e2b_name_own(req, text ? text : "", &name, err);
    if (r >= 0)
        r = read_tags(object, &name, b, err);
    if (r >= 0)
        r = read_number(object, "cpuCount", 1, CPUS_MAX, &cpus, err);
    if (r >= 0)
        r = read_number(object, "memoryMB", MEMORY_MIN_MB, MEMORY_MAX_MB, &memory_mb, err);
    if (r >= 0)
        r = read_number(object, "minFreeDiskMb", 0, DISK_MAX_MB, &disk_mb, err);
    if (r < 0)
        return r;
    (void)snprintf(b->owner, sizeof(b->owner), "%s", req->owner);
    memcpy(b->template, name.name, sizeof(b->template));
    b->cpu_millis = (uint32_t)cpus * 1000;
    b->memory_bytes = memory_mb * MIB;
    b->disk_bytes = disk_mb * MIB;
    return 0;
}

int e2b_build_request(struct request *req, struct err *err)
{
    struct template_build b = { .n_tags = 0 };
    _cleanup_(buf_done) struct buf out = BUF_INIT(64 * 1024);
    struct jout j = JOUT_INIT(&out);
    int r = read_request(req, &b, err);
    if (r >= 0)
        r = template_build_request(req->core, &b, err);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    jout_str(&j, "templateID", b.template);
    jout_str(&j, "buildID", b.id);
    jout_bool(&j, "public", false);
    jout_open(&j, "names", '[');
    jout_str(&j, NULL, b.template);
    jout_close(&j, ']');
    jout_open(&j, "aliases", '[');
    jout_str(&j, NULL, b.template);
    jout_close(&j, ']');
    jout_open(&j, "tags", '[');
    for (size_t i = 0; i < b.n_tags; i++)
        jout_str(&j, NULL, b.tags[i]);
    jout_close(&j, ']');
    jout_close(&j, '}');
    return reply_json(req, 202, &j);
}

int e2b_build_request_old(struct request *req, struct err *err)
{
    return err_fail(err, FAIL_NOT_SUPPORTED,
                    "builds from a Dockerfile that the client pushes to a registry are not "
                    "supported; build with Template.fromDockerfile, or `warren image build`");
}

int e2b_build_start(struct request *req, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    struct e2b_name name;
    struct e2b_build_body body = { 0 };
    int r = e2b_name_own(req, req->args[0], &name, err);
    if (r >= 0)
        r = request_json(req, &object, err);
    if (r >= 0)
        r = e2b_build_body_read(req, object, &body, err);
    if (r >= 0)
        r = template_build_start(req->core, req->owner, name.name, req->args[1], &body.recipe, err);
    e2b_build_body_done(&body);
    return r < 0 ? r : reply_status(req, 202);
}

/* ---- looking ---- */

static const char *const levels[] = { [LOG_LINE_DEBUG] = "debug",
                                      [LOG_LINE_INFO] = "info",
                                      [LOG_LINE_WARN] = "warn",
                                      [LOG_LINE_ERROR] = "error" };

static int read_level(const struct request *req, enum build_log_level *ret_level, struct err *err)
{
    const char *text = uri_param(&req->uri, "level");
    *ret_level = LOG_LINE_DEBUG;
    for (size_t i = 0; text && i < ARRAY_LEN(levels); i++)
        if (strcmp(text, levels[i]) == 0) {
            *ret_level = (enum build_log_level)i;
            return 0;
        }
    return text ? err_fail(err, FAIL_INVALID_QUERY, "'level' must be debug, info, warn or error")
                : 0;
}

static void put_line(void *ctx, const struct build_log_line *line)
{
    struct jout *j = ctx;
    jout_open(j, NULL, '{');
    jout_time(j, "timestamp", line->time_ms);
    jout_str(j, "level", levels[line->level]);
    jout_str(j, "message", line->text);
    jout_str(j, "step", line->step);
    jout_close(j, '}');
}

static void put_reason(struct jout *j, const struct template_build *b)
{
    if (b->state != BUILD_BROKEN)
        return;
    jout_open(j, "reason", '{');
    jout_str(j, "message", b->message);
    jout_str(j, "step", b->step);
    jout_open(j, "logEntries", '[');
    jout_close(j, ']');
    jout_close(j, '}');
}

int e2b_build_status(struct request *req, struct err *err)
{
    static const char *const states[] = { [BUILD_WAITING] = "waiting",
                                          [BUILD_RUNNING] = "building",
                                          [BUILD_READY] = "ready",
                                          [BUILD_BROKEN] = "error" };
    _cleanup_(buf_done) struct buf out = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&out);
    struct e2b_name name;
    struct template_build b;
    enum build_log_level level;
    uint64_t offset = 0, limit = PAGE_MAX;
    int r = e2b_name_own(req, req->args[0], &name, err);
    if (r >= 0)
        r = request_param_u64(req, "logsOffset", 0, SIZE_MAX, &offset, err);
    if (r >= 0)
        r = request_param_u64(req, "limit", 0, PAGE_MAX, &limit, err);
    if (r >= 0)
        r = read_level(req, &level, err);
    /* The state first: lines that come after it was read belong to the next look. */
    if (r >= 0)
        r = template_build_get(req->core, req->owner, name.name, req->args[1], &b, err);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    jout_str(&j, "templateID", b.template);
    jout_str(&j, "buildID", b.id);
    jout_str(&j, "status", states[b.state]);
    jout_open(&j, "logs", '[');
    jout_close(&j, ']');
    jout_open(&j, "logEntries", '[');
    r = template_build_log(req->core, req->owner, name.name, b.id, offset, limit, level, put_line,
                           &j, err);
    jout_close(&j, ']');
    put_reason(&j, &b);
    jout_close(&j, '}');
    return r < 0 ? r : reply_json(req, 200, &j);
}

/* A window of the log in time, from one of its ends. */
struct window {
    struct jout *j;
    uint64_t cursor_ms; /* 0: none */
    bool backward;
    size_t skip, left; /* lines of the window that are not shown; that still are */
    size_t n;          /* in the window */
};

static bool inside(const struct window *w, const struct build_log_line *line)
{
    uint64_t at = (uint64_t)line->time_ms;
    return !w->cursor_ms || (w->backward ? at <= w->cursor_ms : at >= w->cursor_ms);
}

static void count_line(void *ctx, const struct build_log_line *line)
{
    struct window *w = ctx;
    w->n += inside(w, line);
}

static void show_line(void *ctx, const struct build_log_line *line)
{
    struct window *w = ctx;
    if (!inside(w, line) || w->left == 0)
        return;
    if (w->skip) {
        w->skip--;
        return;
    }
    put_line(w->j, line);
    w->left--;
}

int e2b_build_logs(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&out);
    struct window w = { .j = &j };
    struct e2b_name name;
    enum build_log_level level;
    uint64_t limit = PAGE_MAX;
    const char *direction = uri_param(&req->uri, "direction");
    w.backward = direction && strcmp(direction, "backward") == 0;
    int r = e2b_name_own(req, req->args[0], &name, err);
    if (r >= 0)
        r = request_param_u64(req, "cursor", 0, INT64_MAX, &w.cursor_ms, err);
    if (r >= 0)
        r = request_param_u64(req, "limit", 0, LOGS_MAX, &limit, err);
    if (r >= 0)
        r = read_level(req, &level, err);
    if (r >= 0)
        r = template_build_log(req->core, req->owner, name.name, req->args[1], 0, SIZE_MAX, level,
                               count_line, &w, err);
    if (r < 0)
        return r;
    w.left = limit;
    w.skip = w.backward && w.n > limit ? w.n - limit : 0;
    jout_open(&j, NULL, '{');
    jout_open(&j, "logs", '[');
    r = template_build_log(req->core, req->owner, name.name, req->args[1], 0, SIZE_MAX, level,
                           show_line, &w, err);
    jout_close(&j, ']');
    jout_close(&j, '}');
    return r < 0 ? r : reply_json(req, 200, &j);
}
