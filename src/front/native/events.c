#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "core/event.h"
#include "front/native/native.h"

#define LIMIT 100
#define LIMIT_MAX 1000
#define FOLLOW_BATCH 100
#define WAIT_MS 500   /* between looks at whether the client is still there */
#define PING_MS 15000 /* of silence */

static void put_event(struct jout *j, const struct event *e)
{
    jout_open(j, NULL, '{');
    jout_int(j, "seq", e->seq);
    jout_time(j, "time", e->time_ms);
    jout_str(j, "type", e->type);
    jout_str(j, "sandbox", e->sandbox[0] ? e->sandbox : NULL);
    jout_raw(j, "data", e->data && e->data[0] ? e->data : "{}");
    jout_close(j, '}');
}

struct feed {
    struct core *core;
    char owner[OWNER_MAX];
    char sandbox[ID_SIZE]; /* empty: all */
    int64_t since, quiet_since_ms;
    int fd;
};

static int feed_next(void *arg, struct buf *out)
{
    struct feed *f = arg;
    struct event_list list = { 0 };

    for (;;) {
        int r = event_read(f->core, f->owner, f->sandbox[0] ? f->sandbox : NULL, f->since,
                           FOLLOW_BATCH, WAIT_MS, &list, NULL);
        if (r < 0)
            return r;
        f->since = list.next;
        for (size_t i = 0; i < list.n && r >= 0; i++) {
            struct jout j = JOUT_INIT(out);
            put_event(&j, &list.items[i]);
            r = jout_done(&j);
            if (r >= 0)
                r = buf_append(out, "\n", 1);
        }
        bool some = list.n > 0;
        event_list_done(&list);
        int64_t now = clock_mono_ms();
        if (!some && now - f->quiet_since_ms >= PING_MS) {
            some = true;
            r = buf_puts(out, "{\"type\":\"ping\"}\n");
        }
        if (r < 0)
            return r;
        if (some) {
            f->quiet_since_ms = now;
            return 1;
        }
        if (fd_wait(f->fd, POLLRDHUP, 0) != 0)
            return -ECANCELED;
    }
}

static int reply_feed(struct request *req, const char *sandbox, int64_t since, struct err *err)
{
    static const struct reply_source source = { feed_next, free };
    struct feed *f = calloc(1, sizeof(*f));
    if (!f)
        return err_set(err, ENOMEM, "cannot allocate a feed");
    f->core = req->core;
    memcpy(f->owner, req->owner, sizeof(f->owner));
    memcpy(f->sandbox, sandbox, sizeof(f->sandbox));
    f->since = since;
    f->quiet_since_ms = clock_mono_ms();
    f->fd = req->fd;
    return reply_stream(req, "application/x-ndjson", &source, f);
}

/* The id of what `sandbox=` names; ids of sandboxes that are gone are fine. */
static int resolve(struct request *req, char ret_id[ID_SIZE], struct err *err)
{
    const char *who = uri_param(&req->uri, "sandbox");
    ret_id[0] = '\0';
    if (!who)
        return 0;
    if (id_valid(who)) {
        memcpy(ret_id, who, ID_SIZE);
        return 0;
    }
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int r = sandbox_get(req->core, req->owner, who, &s, err);
    if (r >= 0)
        memcpy(ret_id, s.id, ID_SIZE);
    return r;
}

int native_event_list(struct request *req, struct err *err)
{
    static const char *const known[] = { "since", "sandbox", "limit", "cursor", "follow", NULL };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    _cleanup_(event_list_done) struct event_list list = { 0 };
    struct jout j = JOUT_INIT(&b);
    char sandbox[ID_SIZE], cursor[24];
    uint64_t since = 0, limit = LIMIT;
    bool follow = false;

    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = request_param_u64(req, "since", 0, INT64_MAX, &since, err);
    if (r >= 0) /* what `next_cursor` gave: a sequence number too */
        r = request_param_u64(req, "cursor", 0, INT64_MAX, &since, err);
    if (r >= 0)
        r = request_param_u64(req, "limit", 1, LIMIT_MAX, &limit, err);
    if (r >= 0)
        r = request_param_bool(req, "follow", &follow, err);
    if (r >= 0)
        r = resolve(req, sandbox, err);
    if (r >= 0 && follow)
        return reply_feed(req, sandbox, (int64_t)since, err);
    if (r >= 0)
        r = event_read(req->core, req->owner, sandbox[0] ? sandbox : NULL, (int64_t)since,
                       (unsigned)limit, 0, &list, err);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    jout_open(&j, "events", '[');
    for (size_t i = 0; i < list.n; i++)
        put_event(&j, &list.items[i]);
    jout_close(&j, ']');
    jout_int(&j, "next", list.next);
    (void)snprintf(cursor, sizeof(cursor), "%lld", (long long)list.next);
    jout_str(&j, "next_cursor", list.n == limit ? cursor : NULL);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}
