/* One request to a bound host: how it goes, and what comes back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "broker/credential.h"
#include "base/share.h"
#include "broker/tap_private.h"
#include "net/sigv4.h"

static struct head head; /* the loop has one thread */

/* ---- the end of it ---- */

void errand_carried(struct tap *t)
{
    if (t->owed)
        egress_carried(t->net, &t->rec, t->request.len + t->req.passed,
                       t->head_bytes + t->res.passed);
}

static void tell(struct tap *t)
{
    if (!t->owed)
        return;
    errand_carried(t);
    t->owed = false;
    memcpy(t->rec.program, t->program, sizeof(t->rec.program));
    egress_record_who(t->net, &t->rec, &t->who);
}

void errand_drop(struct tap *t)
{
    tell(t);
    reach_cancel(t);
    if (t->state == TAP_ERRAND || t->state == TAP_TUNNEL) { /* it is in the middle of something */
        upstream_close(t->up);
        t->up = NULL;
    }
    answer_redact_done(&t->res);
    buf_wipe(&t->request);
    buf_wipe(&t->gathered);
    t->net->n_gathered -= t->n_gathered;
    t->net->egress->n_gathered -= t->n_gathered;
    t->n_gathered = 0;
    bound_unref(t->bound);
    t->bound = NULL;
    t->carries = 0;
}

int errand_failed(struct tap *t, int failure)
{
    bool refused = t->up && t->state == TAP_ERRAND && reach_is_refused(t->up);
    t->rec.failure = failure;
    return tap_reply(t, refused ? TAP_CERTIFICATE : TAP_UNREACHABLE);
}

/* ---- how it goes ---- */

static int page_of(int r)
{
    switch (r) {
    case -ENODATA: return TAP_NO_VALUE;
    case -EPROTONOSUPPORT: return TAP_SIGNED_PIECES;
    default: return TAP_HEAD_TOO_LARGE;
    }
}

static int write_request(struct tap *t, const struct credential *c)
{
    int r = credential_write(c, &t->request);
    errand_note_uses(t, c);
    if (r >= 0)
        r = buf_append(&t->request, t->gathered.data, t->gathered.len);
    if (r < 0)
        return tap_reply(t, page_of(r));
    buf_drop_front(&t->in, c->head->size);
    if (c->hash) {
        flow_start(&t->req, BODY_EMPTY, 0);
        buf_wipe(&t->gathered); /* a copy is in the request, and counts until that is gone */
    }
    return reach_begin(t);
}

/* RFC 9110, 9.2.2. */
static bool is_repeatable(struct text method)
{
    static const char *const known[] = { "GET", "HEAD", "OPTIONS", "PUT", "DELETE" };
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strlen(known[i]) == method.n && memcmp(known[i], method.p, method.n) == 0)
            return true;
    return false;
}

static int begin_gathering(struct tap *t, const struct head *h)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    t->state = TAP_GATHER;
    return h->expect ? buf_append(&t->out, go_on, sizeof(go_on) - 1) < 0 ? -ENOMEM : 1 : 1;
}

int errand_begin(struct tap *t, const struct head *h)
{
    const struct binding *fits[BINDINGS_MAX];
    char name[HOST_SIZE] = "";
    errand_drop(t);
    t->bound = bound_ref(t->net->bound);
    t->is_head = text_is(h->method, "HEAD");
    t->plain = h->minor == 0;
    t->keep = h->keep_alive && h->minor == 1;
    t->sent = t->answered = t->lost = t->retried = t->req_ended = t->res_ended = false;
    const struct head_field *upgrade = h->upgrade ? head_find(h, "Upgrade") : NULL;
    t->upgrade = upgrade && text_is(upgrade->value, "websocket");
    t->last = credential_is_last(h);
    t->repeatable = is_repeatable(h->method);
    flow_start(&t->req, h->body, h->length);
    /* What stands beside a body's chunks is for a server to take for a field, or for a request: nobody judged it. */
    t->req.body.bare = true;
    if (text_is(h->method, "TRACE") || text_is(h->method, "CONNECT"))
        return tap_reply(t, TAP_METHOD);
    if (!t->bound)
        return tap_reply(t, TAP_DENIED);
    int page = errand_find_host(t, h, name);
    if (page)
        return tap_reply(t, (enum tap_page)page);
    int n = errand_judge(t, h, name, fits);
    if (n < 0)
        return tap_reply(t, TAP_DENIED);
    t->hides = bound_sends(t->bound, t->host);
    t->answer = errand_answer_of(t, fits, (size_t)n);
    if (t->upgrade && t->answer != BINDING_FULL) /* the frames would carry the answer */
        return tap_reply(t, TAP_WITHHELD);
    struct credential c = { .head = h,
                            .fits = fits,
                            .n_fits = (size_t)n,
                            .host = t->host,
                            .port = t->port,
                            .hides = t->hides,
                            .unix_s = clock_now_ms() / 1000 };
    return credential_gathers(&c) ? begin_gathering(t, h) : write_request(t, &c);
}

/* ---- a body that is signed ---- */

int errand_keep(struct tap *t, size_t n)
{
    struct egress *e = t->net->egress;
    if (t->net->n_gathered + n > share(GATHER_ALL, e->n_gathered, TAPS_GATHER_MAX))
        return -EMSGSIZE;
    t->n_gathered += n;
    t->net->n_gathered += n;
    e->n_gathered += n;
    return 0;
}

/* -EMSGSIZE: the body is too large. */
static int keep_body(struct tap *t, const char *p, size_t n)
{
    int r = errand_keep(t, n);
    return r < 0 ? r : buf_append(&t->gathered, p, n);
}

/* Behind the head in `in`; what is behind the body stays there. */
static int gather(struct tap *t, size_t head_size)
{
    while (!t->req.over && t->in.len > head_size) {
        struct text data;
        size_t used = 0;
        int r = body_read(&t->req.body, t->in.data + head_size, t->in.len - head_size, &used,
                          &data.p, &data.n);
        if (r < 0)
            return r;
        t->req.over = r > 0;
        r = keep_body(t, data.p, data.n);
        if (r < 0)
            return r;
        size_t rest = t->in.len - head_size - used;
        memmove(t->in.data + head_size, t->in.data + head_size + used, rest);
        t->in.len -= used;
    }
    return t->req.over;
}

static int sign(struct tap *t, size_t head_size)
{
    const struct binding *fits[BINDINGS_MAX];
    char name[HOST_SIZE] = "", hash[SIGV4_HASH_SIZE];
    if (head_request(t->in.data, head_size, &head) < 0 || errand_find_host(t, &head, name) != 0)
        return -EBADMSG; /* it was well before */
    int n = errand_match(t, &head, name, fits);
    sigv4_hash(t->gathered.data ? t->gathered.data : "", t->gathered.len, hash);
    struct credential c = { .head = &head,
                            .fits = fits,
                            .n_fits = n > 0 ? (size_t)n : 0,
                            .host = t->host,
                            .port = t->port,
                            .hides = t->hides,
                            .unix_s = clock_now_ms() / 1000,
                            .hash = hash,
                            .length = t->gathered.len };
    return n <= 0 ? tap_reply(t, TAP_DENIED) : write_request(t, &c);
}

int errand_gather(struct tap *t)
{
    size_t head_size = head_end(t->in.data, t->in.len, 0);
    int r = flow_flush(&t->sock, &t->out); /* that it may go on */
    if (r < 0)
        return r;
    r = gather(t, head_size);
    if (r < 0)
        return tap_reply(t, r == -EMSGSIZE ? TAP_BODY_TOO_LARGE : TAP_BAD_REQUEST);
    if (r > 0)
        return sign(t, head_size);
    return flow_fill(&t->sock, &t->in);
}

/* ---- the way there ---- */

int errand_start(struct tap *t)
{
    t->state = TAP_ERRAND;
    int r = buf_append(&t->up->out, t->request.data, t->request.len);
    if (r >= 0)
        r = flow_gather(&t->req, &t->in, &t->up->out);
    return r == -EBADMSG ? tap_reply(t, TAP_BAD_REQUEST) : r < 0 ? r : 1;
}

/* It ended before it answered. If it had been used before, it may have ended before the request
 * reached it: that is tried again, once, on a new one, unless it may have been done already. */
static int server_lost(struct tap *t)
{
    bool again =
        t->up->reused && t->up->in.len == 0 && !t->retried && t->req.passed == 0 && t->repeatable;
    if (!reach_is_there(t->up))
        return errand_failed(t, ECONNRESET);
    if (!again)
        return tap_reply(t, TAP_BROKEN);
    upstream_close(t->up);
    t->up = NULL;
    t->retried = true;
    t->sent = t->lost = false;
    return reach_begin(t);
}

static int send_request(struct tap *t)
{
    enum flow_state s = flow_run(&t->req, &t->sock, &t->in, &t->up->sock, &t->up->out);
    errand_tell_uses(t);
    int r = flow_sent(s, &t->up->out, &t->lost);
    t->sent |= r > 0;
    if (r == -EBADMSG && !t->answered)
        return tap_reply(t, TAP_BAD_REQUEST);
    return r < 0 ? r : 0;
}

/* ---- the way back ---- */

/* 1: more came, 0: wait. */
static int fill_answer(struct tap *t)
{
    if (t->up->in.len >= HEAD_MAX)
        return tap_reply(t, TAP_BROKEN);
    int r = flow_fill(&t->up->sock, &t->up->in);
    return r == -ECONNRESET ? server_lost(t) : r;
}

static int put_head(struct tap *t, const struct head *h)
{
    struct answer_redact_head how = { .words = t->bound->words,
                                      .hides = t->hides,
                                      .keep = t->keep,
                                      .chunks = !t->plain,
                                      .inner = t->inner };
    int r = answer_redact_head(h, &how, &t->out);
    t->head_bytes += h->size;
    buf_drop_front(&t->up->in, h->size);
    return r;
}

static int start_tunnel(struct tap *t, const struct head *h)
{
    const struct head_field *to = head_find(h, "Upgrade");
    if (!t->upgrade || !h->upgrade || !to || !text_is(to->value, "websocket"))
        return tap_reply(t, TAP_BROKEN);
    int r = put_head(t, h);
    uint64_t before = t->req.passed;
    flow_start(&t->req, BODY_UNTIL_END, 0);
    t->req.passed = before;
    if (r >= 0)
        r = answer_redact_start_socket(&t->res, t->bound->words, t->hides);
    t->state = TAP_TUNNEL;
    return r < 0 ? r : 1;
}

/* In what is compressed nothing could be found. */
static bool is_encoded(const struct head *h)
{
    for (size_t i = 0; i < h->nfields; i++)
        if (text_is(h->fields[i].name, "Content-Encoding") &&
            !text_is(h->fields[i].value, "identity"))
            return true;
    return false;
}

static int start_answer(struct tap *t, const struct head *h)
{
    if (t->answer != BINDING_FULL)
        return errand_answer_head(t, h);
    if (t->hides && h->body != BODY_EMPTY && is_encoded(h))
        return tap_reply(t, TAP_ENCODED);
    t->keep = t->keep && t->req.over;
    t->up->keep = h->keep_alive;
    enum body_kind kind = h->body;
    uint64_t length = h->length;
    int r = put_head(t, h);
    if (r >= 0)
        r = answer_redact_start(&t->res, kind, length, t->bound->words, !t->plain);
    t->answered = true;
    return r < 0 ? r : 1;
}

static int read_answer(struct tap *t)
{
    struct buf *in = &t->up->in;
    size_t n = head_end(in->data, in->len, 0);
    if (n == 0)
        return fill_answer(t);
    if (head_answer(in->data, n, t->is_head, &head) < 0)
        return tap_reply(t, TAP_BROKEN);
    if (head.status == 101)
        return start_tunnel(t, &head);
    if (head.status >= 200)
        return start_answer(t, &head);
    int r = put_head(t, &head); /* 100, 103: on the way to the answer */
    if (t->plain || t->answer != BINDING_FULL)
        buf_clear(&t->out); /* the client knows no interim answers, or must not see this one */
    if (r >= 0)
        r = flow_flush(&t->sock, &t->out);
    return r < 0 ? r : 1;
}

static int finish(struct tap *t)
{
    struct upstream *u = t->up;
    bool keep = !t->last && u->keep && u->in.len == 0 && u->out.len == 0 && t->sent && !t->lost;
    t->state = t->keep ? TAP_HEAD : TAP_REPLY; /* with nothing left to say */
    errand_drop(t);
    if (keep) {
        buf_done(&u->in);
    } else {
        upstream_close(u);
        t->up = NULL;
    }
    return 1;
}

/* ---- as much as may be ---- */

static void on_allowed(struct allot_wait *w)
{
    tap_step(container_of(w, struct tap, wait));
}

/* Into *ret_most. */
static bool may(struct tap *t, enum allot_way way, size_t *ret_most)
{
    *ret_most = egress_may(t->net, way);
    t->held[way] = *ret_most == 0;
    if (t->held[way] && !t->wait.at)
        egress_wait(t->net, &t->wait, on_allowed);
    return !t->held[way];
}

/* What is pending may go even so: it was counted. */
static int flush(struct sock *to, struct buf *pending)
{
    int r = flow_flush(to, pending);
    return r < 0 ? r : 0;
}

int errand_step(struct tap *t)
{
    int r = 0;
    if (!t->sent)
        r = t->req.over || may(t, ALLOT_SENT, &t->req.most) ? send_request(t)
                                                            : flush(&t->up->sock, &t->up->out);
    if (r != 0)
        return r;
    if (!t->answered)
        return read_answer(t);
    if (!may(t, ALLOT_RECEIVED, &t->res.most))
        return flush(&t->sock, &t->out);
    if (t->answer != BINDING_FULL)
        return errand_answer_step(t);
    r = flow_result(answer_redact_run(&t->res, &t->up->sock, &t->up->in, &t->sock, &t->out));
    return r > 0 ? finish(t) : r;
}

/* ---- no longer HTTP ---- */

static int tunnel_out(struct tap *t, struct upstream *u)
{
    if (!may(t, ALLOT_SENT, &t->req.most))
        return flush(&u->sock, &u->out);
    enum flow_state s = flow_run(&t->req, &t->sock, &t->in, &u->sock, &u->out);
    return flow_tunnelled(s, &u->sock, &t->req_ended);
}

static int tunnel_in(struct tap *t, struct upstream *u)
{
    if (!may(t, ALLOT_RECEIVED, &t->res.most))
        return flush(&t->sock, &t->out);
    enum flow_state s = answer_redact_run(&t->res, &u->sock, &u->in, &t->sock, &t->out);
    return flow_tunnelled(s, &t->sock, &t->res_ended);
}

int errand_tunnel(struct tap *t)
{
    int r = tunnel_out(t, t->up);
    if (r >= 0)
        r = tunnel_in(t, t->up);
    return r < 0 ? r : t->req_ended && t->res_ended ? -ECONNRESET : 0;
}
