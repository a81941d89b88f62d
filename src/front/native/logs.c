/* The daemon's own log, from the lines it keeps in memory. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/logring.h"
#include "front/native/native.h"

#define WAIT_MS 500   /* between looks at whether the client is still there */
#define PING_MS 15000 /* of silence */

struct lines {
    struct core *core;
    char owner[OWNER_MAX];
    bool all;              /* the operator: every line; else those about sandboxes of the owner */
    char sandbox[ID_SIZE]; /* empty: any */
    enum log_level level;
    int64_t since_ms, quiet_since_ms;
    bool follow;
    uint64_t seq;
    int fd;
    /* the last sandbox that was looked up: lines about one come in a row */
    char asked[ID_SIZE];
    bool mine;
    struct logring_line line;
};

static bool is_mine(struct lines *l, const char *id)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    struct err why = ERR_INIT;
    if (strcmp(l->asked, id) == 0)
        return l->mine;
    int r = sandbox_get(l->core, l->owner, id, &s, &why);
    memcpy(l->asked, id, ID_SIZE);
    l->mine = r >= 0 || (why.failure == FAIL_SANDBOX_GONE);
    return l->mine;
}

static bool wanted(struct lines *l)
{
    const struct logring_line *line = &l->line;
    const char *at = line->text + log_sentence(line->text);
    char id[ID_SIZE + 1] = "";
    struct log_field f;
    if (line->level < l->level || line->time_ms < l->since_ms)
        return false;
    while (!id[0] && log_field_next(&at, &f))
        if (f.name_len == 7 && memcmp(f.name, "sandbox", 7) == 0)
            (void)log_field_value(&f, id, sizeof(id));
    if (l->sandbox[0] && strcmp(l->sandbox, id) != 0)
        return false;
    return l->all || (id_valid(id) && is_mine(l, id));
}

static int put_line(const struct logring_line *line, struct buf *out)
{
    struct jout j = JOUT_INIT(out);
    struct log_record rec = { line->time_ms, line->level, line->module, line->text };
    log_put_json(&j, &rec);
    int r = jout_done(&j);
    return r < 0 ? r : buf_append(out, "\n", 1);
}

static int lines_next(void *arg, struct buf *out)
{
    struct lines *l = arg;
    for (;;) {
        int r = logring_next(l->seq, l->follow ? WAIT_MS : 0, &l->line);
        int64_t now = clock_mono_ms();
        if (r > 0) {
            l->seq = l->line.seq;
            if (!wanted(l))
                continue;
            l->quiet_since_ms = now;
            r = put_line(&l->line, out);
            return r < 0 ? r : 1;
        }
        if (!l->follow)
            return 0;
        if (now - l->quiet_since_ms >= PING_MS) {
            l->quiet_since_ms = now;
            r = buf_puts(out, "{\"type\":\"ping\"}\n");
            return r < 0 ? r : 1;
        }
        if (fd_wait(l->fd, POLLRDHUP, 0) != 0)
            return -ECANCELED;
    }
}

int native_param_time(const struct request *req, const char *name, int64_t *ret_ms, struct err *err)
{
    const char *text = uri_param(&req->uri, name);
    if (!text)
        return 0;
    if (clock_parse(text, ret_ms) < 0)
        return err_fail(err, FAIL_INVALID_QUERY, "'%s' must be a time such as 2026-01-31T12:04:05Z",
                        name);
    return 1;
}

static int read_sandbox(const struct request *req, struct lines *l, struct err *err)
{
    const char *who = uri_param(&req->uri, "sandbox");
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    if (!who)
        return 0;
    if (id_valid(who)) { /* also of one that is gone, or of another team if one may */
        memcpy(l->sandbox, who, ID_SIZE);
        return 0;
    }
    int r = sandbox_get(req->core, req->owner, who, &s, err);
    if (r >= 0)
        memcpy(l->sandbox, s.id, ID_SIZE);
    return r;
}

int native_log_list(struct request *req, struct err *err)
{
    static const char *const known[] = { "since", "follow", "level", "sandbox", NULL };
    static const struct reply_source source = { lines_next, free };
    _cleanup_free_ struct lines *l = calloc(1, sizeof(*l));
    const char *level = uri_param(&req->uri, "level");
    if (!l)
        return err_set(err, ENOMEM, "cannot allocate a feed");
    *l = (struct lines){ .core = req->core,
                         .all = req->admin && !req->for_team,
                         .fd = req->fd,
                         .quiet_since_ms = clock_mono_ms() };
    memcpy(l->owner, req->owner, sizeof(l->owner));
    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = native_param_time(req, "since", &l->since_ms, err);
    if (r >= 0)
        r = request_param_bool(req, "follow", &l->follow, err);
    if (r >= 0 && level && log_parse_level(level, &l->level) < 0)
        r = err_fail(err, FAIL_INVALID_QUERY, "'level' must be debug, info, warn or error");
    if (r >= 0)
        r = read_sandbox(req, l, err);
    return r < 0 ? r : reply_stream(req, "application/x-ndjson", &source, take_ptr(l));
}
