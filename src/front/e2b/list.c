/* GET /v2/sandboxes: filters in the query, the next page's token in a header. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "front/e2b/e2b.h"

#define LIMIT 100

/* Percent-decodes in place; '+' is a space where `form` says so. */
static void decode(char *text, bool form)
{
    char *to = text;
    for (; *text; text++) {
        int byte = hex_percent(text, strnlen(text, 3));
        if (byte > 0) {
            *to++ = (char)byte;
            text += 2;
        } else {
            *to++ = form && *text == '+' ? ' ' : *text;
        }
    }
    *to = '\0';
}

/* key=value&key=value, each of them encoded twice more (the client encodes three times). */
static int read_metadata(const char *text, struct pairs *out, struct err *err)
{
    _cleanup_free_ char *copy = strdup(text ? text : "");
    char *rest = copy;
    if (!copy)
        return err_set(err, ENOMEM, "cannot allocate a filter");
    while (rest && *rest) {
        char *pair = strsep(&rest, "&");
        char *value = strchr(pair, '=');
        if (!value)
            return err_fail(err, FAIL_INVALID_QUERY, "'metadata' is not a list of key=value");
        *value++ = '\0';
        decode(pair, true);
        decode(value, true);
        decode(pair, false);
        decode(value, false);
        if (pairs_add(out, pair, value) < 0)
            return err_set(err, ENOMEM, "cannot allocate a filter");
    }
    return 0;
}

static int read_states(const struct request *req, unsigned *ret_states, struct err *err)
{
    const unsigned running = 1u << SANDBOX_CREATING | 1u << SANDBOX_RUNNING | 1u << SANDBOX_FROZEN |
                             1u << SANDBOX_STOPPING | 1u << SANDBOX_PAUSING;
    const unsigned paused = 1u << SANDBOX_STOPPED | 1u << SANDBOX_PAUSED | 1u << SANDBOX_ARCHIVED;
    unsigned states = 0;
    for (size_t i = 0; i < req->uri.nparams; i++) {
        if (strcmp(req->uri.params[i].name, "state") != 0)
            continue;
        const char *text = req->uri.params[i].value;
        while (*text) {
            size_t n = strcspn(text, ",");
            if (n == 7 && strncmp(text, "running", n) == 0)
                states |= running;
            else if (n == 6 && strncmp(text, "paused", n) == 0)
                states |= paused;
            else
                return err_fail(err, FAIL_INVALID_QUERY, "'state' must be running or paused");
            text += n + (text[n] == ',');
        }
    }
    *ret_states = states ? states : running | paused;
    return 0;
}

static int list(struct request *req, struct sandbox_filter *filter, struct err *err)
{
    _cleanup_(sandbox_list_done) struct sandbox_list found = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    int r = sandbox_list(req->core, req->owner, filter, &found, err);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < found.n; i++) {
        jout_open(&j, NULL, '{');
        e2b_put_listed(&j, &found.items[i]);
        jout_close(&j, '}');
    }
    jout_close(&j, ']');
    if (found.next_cursor)
        reply_header(req, "X-Next-Token", "%s", found.next_cursor);
    return reply_json(req, 200, &j);
}

int e2b_sandbox_list(struct request *req, struct err *err)
{
    struct sandbox_filter filter = { .limit = LIMIT, .cursor = uri_param(&req->uri, "nextToken") };
    const char *order = uri_param(&req->uri, "order");
    uint64_t limit = LIMIT;
    filter.ascending = order && strcmp(order, "asc") == 0;
    filter.template = uri_param(&req->uri, "template");
    if (filter.template && strcmp(filter.template, "code-interpreter-v1") == 0)
        filter.template = "code-interpreter";
    if (order && !filter.ascending && strcmp(order, "desc") != 0)
        return err_fail(err, FAIL_INVALID_QUERY, "'order' must be asc or desc");
    const char *after = uri_param(&req->uri, "startedAfter");
    if (after && clock_parse(after, &filter.started_ms) < 0)
        return err_fail(err, FAIL_INVALID_QUERY, "'startedAfter' must be a time as RFC 3339");
    int r = read_metadata(uri_param(&req->uri, "metadata"), &filter.metadata, err);
    if (r >= 0)
        r = read_states(req, &filter.states, err);
    if (r >= 0)
        r = request_param_u64(req, "limit", 1, LIMIT, &limit, err);
    filter.limit = (unsigned)limit;
    if (r >= 0)
        r = list(req, &filter, err);
    pairs_done(&filter.metadata);
    return r;
}

int e2b_sandbox_list_v1(struct request *req, struct err *err)
{
    struct sandbox_filter filter = { .limit = 1000,
                                     .states = 1u << SANDBOX_RUNNING | 1u << SANDBOX_FROZEN };
    int r = read_metadata(uri_param(&req->uri, "metadata"), &filter.metadata, err);
    if (r >= 0)
        r = list(req, &filter, err);
    pairs_done(&filter.metadata);
    return r;
}
