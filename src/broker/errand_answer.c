/* errand_answer - answers that a binding cuts down: to 204, to the status, or to JSON that the
 * broker parses and writes anew. Of the head only the status passes, because a server can put a
 * secret into any field. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "broker/tap_private.h"

enum binding_answer errand_answer_of(const struct tap *t, const struct binding *const *fits,
                                     size_t n)
{
    enum binding_answer least = BINDING_FULL;
    for (size_t i = 0; i < n; i++)
        if (fits[i]->answer > least)
            least = fits[i]->answer;
    if (n) /* only the bindings that fit decide */
        return least;
    /* No binding fits this request, but it may read back what an earlier, bound request left on
     * the server. */
    for (size_t i = 0; i < t->bound->bindings.n; i++) {
        const struct binding *b = &t->bound->bindings.items[i];
        if (b->answer > least && host_matches(b->host, t->host))
            least = b->answer;
    }
    return least;
}

/* End the request and answer the client. The connection to the host is closed if its answer was
 * not read to the end. */
static int reply(struct tap *t, unsigned status, const char *json, size_t n)
{
    bool keep = t->keep && t->req.over, bare = status == 204 || status == 304;
    errand_drop(t);
    t->keep = keep;
    t->state = TAP_REPLY;
    /* The body stays in memory until the client has read it, so it counts against the limits. */
    if (n && errand_keep(t, n) < 0)
        return tap_reply(t, TAP_WITHHELD);
    t->out.max = n + HEAD_MAX > t->out.max ? n + HEAD_MAX : t->out.max;
    int r = buf_printf(&t->out, "HTTP/1.1 %03u \r\n%s", status,
                       json ? "Content-Type: application/json\r\n" : "");
    if (r >= 0 && !bare)
        r = buf_printf(&t->out, "Content-Length: %zu\r\n", n);
    if (r >= 0)
        r = buf_puts(&t->out, keep ? "\r\n" : "Connection: close\r\n\r\n");
    if (r >= 0 && n)
        r = buf_append(&t->out, json, n);
    return r < 0 ? r : 1;
}

static bool is_json(const struct head *h)
{
    const struct head_field *type = head_find(h, "Content-Type"),
                            *encoding = head_find(h, "Content-Encoding");
    if (encoding && !text_is(encoding->value, "identity"))
        return false;
    if (!type)
        return true; /* the parser decides */
    size_t n = 0;
    while (n < type->value.n && type->value.p[n] != ';' && type->value.p[n] != ' ')
        n++;
    return text_is((struct text){ type->value.p, n }, "application/json") ||
           (n > 5 && strncasecmp(type->value.p + n - 5, "+json", 5) == 0);
}

int errand_answer_head(struct tap *t, const struct head *h)
{
    t->head_bytes += h->size;
    if (t->answer != BINDING_JSON || h->body == BODY_EMPTY)
        return reply(t, t->answer == BINDING_NONE ? 204 : h->status, NULL, 0);
    if (!is_json(h))
        return tap_reply(t, TAP_WITHHELD);
    t->status = h->status;
    t->up->keep = h->keep_alive;
    enum body_kind kind = h->body;
    uint64_t length = h->length;
    buf_drop_front(&t->up->in, h->size);
    buf_wipe(&t->gathered);
    int r = answer_redact_start(&t->res, kind, length, NULL, false);
    t->res.kept = &t->gathered;
    t->answered = true;
    return r < 0 ? r : 1;
}

/* The JSON as our library writes it, secrets hidden. NULL: the body is not JSON, or is not
 * once they are. */
static char *write_anew(const struct tap *t)
{
    const struct buf *in = &t->gathered;
    char *text = NULL;
    if (in->len == 0 || !json_shallow(in->data, in->len))
        return NULL;
    json_t *v = json_loadb(in->data, in->len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    if (v)
        text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
    json_decref(v);
    if (!text)
        return NULL;
    size_t n = strlen(text);
    v = redact_whole(t->bound->words, text, n) < 0 ? NULL
                                                   : json_loadb(text, n, JSON_DECODE_ANY, NULL);
    if (!v) {
        explicit_bzero(text, n);
        free(text);
        return NULL;
    }
    json_decref(v);
    return text;
}

int errand_answer_step(struct tap *t)
{
    size_t before = t->gathered.len;
    int r = flow_result(answer_redact_run(&t->res, &t->up->sock, &t->up->in, &t->sock, &t->out));
    if (r < 0 || t->gathered.len > TAP_JSON_MAX || errand_keep(t, t->gathered.len - before) < 0)
        return tap_reply(t, TAP_WITHHELD);
    if (r == 0)
        return 0;
    char *text = write_anew(t);
    if (!text)
        return tap_reply(t, TAP_WITHHELD);
    r = reply(t, t->status, text, strlen(text));
    free(text);
    return r;
}
