/* GET /v1/sandboxes. */
#include <errno.h>
#include <string.h>

#include "front/native/native.h"

#define LIST_LIMIT 100
#define LIST_LIMIT_MAX 1000

static int read_states(const char *text, unsigned *ret_states, struct err *err)
{
    unsigned states = 0;
    while (*text) {
        size_t n = strcspn(text, ",");
        char name[16] = "";
        enum sandbox_state state;
        if (n < sizeof(name))
            memcpy(name, text, n);
        if (sandbox_state_parse(name, &state) < 0 || state == SANDBOX_GONE)
            return err_fail(err, FAIL_INVALID_QUERY,
                            "'state' must be a list of creating, running, frozen, stopping, "
                            "stopped, pausing, paused, archived, deleting");
        states |= 1u << state;
        text += n;
        text += *text == ',';
    }
    *ret_states = states;
    return 0;
}

static int read_filter(const struct request *req, struct sandbox_filter *f, struct err *err)
{
    static const char *const known[] = { "state", "metadata.*", "name", "order",
                                         "limit", "cursor",     NULL };
    uint64_t limit = LIST_LIMIT;
    const char *text;

    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = request_param_u64(req, "limit", 1, LIST_LIMIT_MAX, &limit, err);
    if (r >= 0 && (text = uri_param(&req->uri, "state")))
        r = read_states(text, &f->states, err);
    if (r < 0)
        return r;
    f->limit = (unsigned)limit;
    f->name = uri_param(&req->uri, "name");
    f->cursor = uri_param(&req->uri, "cursor");
    text = uri_param(&req->uri, "order");
    if (text && strcmp(text, "asc") != 0 && strcmp(text, "desc") != 0)
        return err_fail(err, FAIL_INVALID_QUERY, "'order' must be asc or desc");
    f->ascending = text && strcmp(text, "asc") == 0;
    for (size_t i = 0; i < req->uri.nparams; i++) {
        const struct uri_param *p = &req->uri.params[i];
        if (strncmp(p->name, "metadata.", 9) != 0)
            continue;
        r = pairs_add(&f->metadata, p->name + 9, p->value);
        if (r < 0)
            return err_set(err, -r, "cannot allocate the filter");
    }
    return 0;
}

int native_sandbox_list(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct sandbox_filter filter = { 0 };
    struct sandbox_list list = { 0 };

    int r = read_filter(req, &filter, err);
    if (r >= 0)
        r = sandbox_list(req->core, req->owner, &filter, &list, err);
    pairs_done(&filter.metadata);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    jout_open(&j, "sandboxes", '[');
    for (size_t i = 0; i < list.n; i++)
        native_put_sandbox(&j, NULL, &list.items[i]);
    jout_close(&j, ']');
    jout_str(&j, "next_cursor", list.next_cursor);
    jout_close(&j, '}');
    sandbox_list_done(&list);
    return reply_json(req, 200, &j);
}
