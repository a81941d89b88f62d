#include <errno.h>
#include <string.h>

#include "core/build.h"
#include "front/native/native.h"

#define PING_MS 15000 /* of silence */
#define ARG_PREFIX "arg."

/* ---- the context comes in ---- */

static int read_query(const struct request *req, struct build_config *config, struct pairs *args,
                      struct err *err)
{
    static const char *const known[] = { "name",     "dockerfile", "target",  "arg.*",
                                         "no_cache", "public",     "network", NULL };
    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = request_param_bool(req, "no_cache", &config->no_cache, err);
    if (r >= 0)
        r = request_param_bool(req, "public", &config->public, err);
    for (size_t i = 0; i < req->uri.nparams && r >= 0; i++) {
        const char *name = req->uri.params[i].name;
        if (strncmp(name, ARG_PREFIX, strlen(ARG_PREFIX)) != 0)
            continue;
        if (!name[strlen(ARG_PREFIX)])
            return err_fail(err, FAIL_INVALID_QUERY, "'arg.' needs a name behind it");
        if (pairs_add(args, name + strlen(ARG_PREFIX), req->uri.params[i].value) < 0)
            return err_set(err, ENOMEM, "cannot keep an argument");
    }
    if (r < 0)
        return r;
    config->owner = req->owner;
    config->trusted = req->admin;
    config->args = args;
    config->name = uri_param(&req->uri, "name");
    config->dockerfile = uri_param(&req->uri, "dockerfile");
    config->target = uri_param(&req->uri, "target");
    config->network = uri_param(&req->uri, "network");
    if (!config->network)
        config->network = "open";
    if (!config->name)
        return err_fail(err, FAIL_INVALID_QUERY, "'name' must say what to call the image");
    return 0;
}

static int sink_begin(struct request *req, struct err *err)
{
    struct build_config config = { 0 };
    struct pairs args = { 0 };
    struct build *build = NULL;
    int r = read_query(req, &config, &args, err);
    if (r >= 0)
        r = build_begin(req->core, &config, &build, err);
    pairs_done(&args);
    if (r >= 0)
        req->sink = build;
    return r;
}

static int sink_write(struct request *req, const char *p, size_t n, struct err *err)
{
    return build_write(req->sink, p, n, err);
}

static void sink_end(struct request *req)
{
    build_free(req->sink);
    req->sink = NULL;
}

const struct route_sink native_build_sink = { sink_begin, sink_write, sink_end, NULL };

/* ---- what happens goes out, as lines ---- */

struct lines {
    struct build *build;
    struct core *core;
    int fd;
    struct build_event first; /* read before there was an answer */
    bool begun, ended;
};

static void lines_free(void *arg)
{
    struct lines *l = arg;
    if (!l->begun)
        build_event_done(&l->first);
    build_free(l->build);
    free(l);
}

static void put_failure(struct jout *j, const struct build_event *ev)
{
    jout_str(j, "code", failure_name(ev->err.failure));
    jout_str(j, "message", ev->err.msg);
    if (ev->line)
        jout_uint(j, "line", ev->line);
}

static void put_event(const struct lines *l, struct jout *j, const struct build_event *ev)
{
    static const char *const types[] = {
        [BUILD_STEP] = "step",    [BUILD_CACHED] = "cached",   [BUILD_LOG] = "log",
        [BUILD_LAYER] = "layer",  [BUILD_WARNING] = "warning", [BUILD_IMAGE] = "image",
        [BUILD_FAILED] = "error",
    };
    jout_str(j, "type", types[ev->type]);
    if (ev->n)
        jout_uint(j, "n", ev->n);
    switch (ev->type) {
    case BUILD_STEP:
        jout_uint(j, "of", ev->of);
        jout_uint(j, "line", ev->line);
        jout_strn(j, "text", ev->text, ev->len);
        break;
    case BUILD_LOG:
        jout_str(j, "stream", ev->stream == WIRE_STDERR ? "stderr" : "stdout");
        jout_strn(j, "text", ev->text, ev->len);
        break;
    case BUILD_LAYER:
        jout_str(j, "digest", ev->digest);
        jout_uint(j, "size_bytes", ev->size_bytes);
        break;
    case BUILD_WARNING:
        jout_strn(j, "message", ev->text, ev->len);
        if (ev->line)
            jout_uint(j, "line", ev->line);
        break;
    case BUILD_IMAGE: native_put_made(l->core, j, &ev->image); break;
    case BUILD_FAILED: put_failure(j, ev); break;
    case BUILD_CACHED: break;
    }
}

static int lines_next(void *arg, struct buf *out)
{
    struct lines *l = arg;
    struct jout j = JOUT_INIT(out);
    struct build_event ev;
    int r = 1;
    if (l->ended)
        return 0;
    if (l->begun)
        r = build_next(l->build, PING_MS, l->fd, &ev);
    else
        ev = l->first;
    l->begun = true;
    if (r < 0)
        return r; /* freeing the build ends it */
    jout_open(&j, NULL, '{');
    if (r == 0) {
        jout_str(&j, "type", "ping");
    } else {
        put_event(l, &j, &ev);
        l->ended = ev.type == BUILD_IMAGE || ev.type == BUILD_FAILED;
        build_event_done(&ev);
    }
    jout_close(&j, '}');
    r = jout_done(&j);
    if (r >= 0)
        r = buf_append(out, "\n", 1);
    return r < 0 ? r : 1;
}

static void put_line(struct jout *j, const void *arg)
{
    jout_uint(j, "line", *(const unsigned *)arg);
}

/* What fails before the first step is an answer of its own, with a status. */
static int reply_failure(struct request *req, struct lines *l, struct err *err)
{
    unsigned line = l->first.line;
    *err = l->first.err;
    lines_free(l);
    return line ? native_reply_error(req, err, put_line, &line) : -err->code;
}

int native_image_build(struct request *req, struct err *err)
{
    static const struct reply_source source = { lines_next, lines_free };
    struct lines *l = calloc(1, sizeof(*l));
    if (!l)
        return err_set(err, ENOMEM, "cannot allocate a stream");
    *l = (struct lines){ .build = req->sink, .core = req->core, .fd = req->fd };
    req->sink = NULL;
    int r = build_start(l->build, err);
    while (r == 0)
        r = build_next(l->build, PING_MS, req->fd, &l->first);
    if (r < 0) {
        l->begun = true; /* nothing was read */
        lines_free(l);
        return r;
    }
    if (l->first.type == BUILD_FAILED)
        return reply_failure(req, l, err);
    return reply_stream(req, "application/x-ndjson", &source, l);
}
