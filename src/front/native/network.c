/* A sandbox's network in JSON, and the log of what it tried to reach. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "core/account.h"
#include "core/network.h"
#include "front/http/fields.h"
#include "front/native/native.h"
#include "net/policy.h"
#include "net/proxy.h"

#define WAIT_S_MAX 60
#define LOOK_MS 500

static int wrong_shape(const struct field *f, struct err *err)
{
    return err_fail(err, FAIL_INVALID_NETWORK,
                    "'%s' must be \"none\", \"agents\", \"open\", or an object with one of them as "
                    "'preset' or a list of 'rules' such as \"allow *.example.com 443\", and "
                    "perhaps a 'proxy'",
                    f->name);
}

static int add_rule(struct buf *text, const json_t *rule, const struct field *f, struct err *err)
{
    const char *p = json_string_value(rule);
    if (!p)
        return wrong_shape(f, err);
    if (strchr(p, '\n') || strlen(p) != json_string_length(rule))
        return err_fail(err, FAIL_INVALID_NETWORK, "a rule is one line");
    int r = buf_printf(text, "%s\n", p);
    if (r == -EMSGSIZE)
        return err_fail(err, FAIL_INVALID_NETWORK, "the rules are too long");
    return r < 0 ? err_set(err, -r, "cannot keep the rules") : 0;
}

static int read_rules(const json_t *rules, const struct field *f, struct buf *text, struct err *err)
{
    const json_t *rule;
    size_t i;
    json_array_foreach(rules, i, rule) {
        const char *p = json_string_value(rule);
        if (p && !strchr(p, ' ')) /* one word would be taken for the name of a set of rules */
            return err_fail(err, FAIL_INVALID_NETWORK,
                            "'%.60s' is no rule; write 'allow' or 'deny', a host or range, and if "
                            "need be ports and a protocol, in one text",
                            p);
        int r = add_rule(text, rule, f, err);
        if (r < 0)
            return r;
    }
    return text->len ? 0 : buf_puts(text, "none\n");
}

static int add_proxy(struct buf *text, const json_t *proxy, struct err *err)
{
    const char *url = json_string_value(proxy);
    if (strpbrk(url, " \t\r\n") || strlen(url) != json_string_length(proxy))
        return err_fail(err, FAIL_INVALID_PROXY, "a proxy is one word");
    int r = buf_printf(text, "proxy %s", url);
    return r < 0 ? err_fail(err, FAIL_INVALID_PROXY, "the proxy is too long") : 0;
}

static int read_object(const json_t *o, const struct field *f, char **ret_text, struct err *err)
{
    const json_t *rules = json_object_get(o, "rules"), *preset = json_object_get(o, "preset");
    const json_t *proxy = json_object_get(o, "proxy");
    size_t known = (rules ? 1u : 0) + (preset ? 1 : 0) + (proxy ? 1 : 0);
    _cleanup_(buf_done) struct buf text = BUF_INIT(NETWORK_TEXT_MAX);
    bool has_proxy = proxy && !json_is_null(proxy);
    if (json_object_size(o) != known || !rules == !preset || (rules && !json_is_array(rules)) ||
        (preset && !json_is_string(preset)) || (has_proxy && !json_is_string(proxy)))
        return wrong_shape(f, err);
    int r = rules ? read_rules(rules, f, &text, err) : add_rule(&text, preset, f, err);
    if (r == 0 && has_proxy)
        r = add_proxy(&text, proxy, err);
    if (r < 0)
        return r;
    if (!rules && !has_proxy) /* as the word alone is kept */
        text.data[--text.len] = '\0';
    *ret_text = buf_steal(&text);
    return *ret_text ? 0 : err_set(err, ENOMEM, "out of memory");
}

int native_as_network(const json_t *v, const struct field *f, void *at, struct err *err)
{
    char **member = at, *text = NULL;
    int r = 0;
    if (json_is_object(v))
        r = read_object(v, f, &text, err);
    else if (!json_is_string(v) || strpbrk(json_string_value(v), " \n"))
        r = wrong_shape(f, err);
    else if (!(text = strdup(json_string_value(v))))
        r = err_set(err, ENOMEM, "out of memory");
    if (r == 0)
        r = network_check(text, err);
    if (r < 0) {
        free(text);
        return r;
    }
    free(*member);
    *member = text;
    return 0;
}

/* Without its password: what goes in does not come out. */
static void put_proxy(struct jout *j, const char *url)
{
    _cleanup_(buf_done) struct buf shown = BUF_INIT(2 * PROXY_TEXT_MAX);
    struct proxy proxy;
    if (url && proxy_parse(url, strcspn(url, "\n"), &proxy, NULL) == 0 &&
        proxy_show(&proxy, &shown) == 0)
        jout_str(j, "proxy", shown.data);
    explicit_bzero(&proxy, sizeof(proxy));
}

static void put_rules(struct jout *j, const char *p, size_t n)
{
    const char *end = p + n;
    jout_open(j, "rules", '[');
    while (p < end) {
        size_t len = strcspn(p, "\n");
        jout_strn(j, NULL, p, len);
        p += len + (p[len] == '\n');
    }
    jout_close(j, ']');
}

void native_put_network(struct jout *j, const struct sandbox_spec *spec)
{
    size_t n;
    const char *p = spec->network, *proxy = network_proxy(p, &n);
    bool word = network_is_none(p) || !memchr(p, ' ', n);
    const char *preset = network_is_none(p) ? "none" : p;
    if (proxy || !word)
        jout_open(j, "network", '{');
    if (word)
        jout_strn(j, proxy ? "preset" : "network", preset, strcspn(preset, "\n"));
    else
        put_rules(j, p, n);
    put_proxy(j, proxy);
    if (proxy || !word)
        jout_close(j, '}');
}

static void put_entry(struct jout *j, const struct network_entry *e)
{
    const struct broker_record *r = &e->record;
    char hint[NETWORK_HINT_SIZE];
    jout_open(j, NULL, '{');
    jout_uint(j, "number", e->number);
    jout_time(j, "time", r->wall_ms);
    jout_str(j, "kind", r->question ? "dns" : "connection");
    jout_str(j, "protocol", network_protocol(r));
    jout_str(j, "name", r->name[0] ? r->name : NULL);
    jout_str(j, "address", r->address[0] ? r->address : NULL);
    if (r->question)
        jout_null(j, "port");
    else
        jout_uint(j, "port", r->port);
    jout_str(j, "verdict", r->allowed ? "allowed" : "denied");
    jout_str(j, "reason", network_reason(r));
    jout_str(j, "rule", r->rule[0] ? r->rule : NULL);
    jout_str(j, "error", network_error(r));
    jout_str(j, "hint", network_hint(r, hint));
    jout_str(j, "program", r->program[0] ? r->program : NULL);
    jout_str(j, "binding", r->binding[0] ? r->binding : NULL);
    jout_bool(j, "open", r->open);
    jout_uint(j, "sent_bytes", r->sent_bytes);
    jout_uint(j, "received_bytes", r->received_bytes);
    jout_close(j, '}');
}

static int read_query(struct request *req, struct network_query *q, struct err *err)
{
    static const char *const known[] = { "after", "limit", "wait_s", NULL };
    uint64_t limit = NETWORK_LOG_MAX, wait_s = 0;
    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = request_param_u64(req, "after", 0, UINT64_MAX, &q->after, err);
    if (r >= 0)
        r = request_param_u64(req, "limit", 1, NETWORK_LOG_MAX, &limit, err);
    if (r >= 0)
        r = request_param_u64(req, "wait_s", 0, WAIT_S_MAX, &wait_s, err);
    q->limit = (size_t)limit;
    q->wait_ms = (int)wait_s * 1000;
    return r;
}

/* Looks now and then whether the client is still there. */
static int wait_log(struct request *req, struct network_query q, struct network_entry **ret_items,
                    size_t *ret_n, struct err *err)
{
    int64_t until = clock_mono_ms() + q.wait_ms;
    for (;;) {
        int64_t left = until - clock_mono_ms();
        q.wait_ms = left > LOOK_MS ? LOOK_MS : left > 0 ? (int)left : 0;
        int r = network_log(req->core, req->owner, req->args[0], &q, ret_items, ret_n, err);
        if (r < 0 || *ret_n || left <= 0)
            return r;
        free(*ret_items);
        *ret_items = NULL;
        if (fd_wait(req->fd, POLLRDHUP, 0) != 0)
            return -ECANCELED;
    }
}

int native_network_log(struct request *req, struct err *err)
{
    _cleanup_free_ struct network_entry *items = NULL;
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct network_query q = { 0 };
    size_t n = 0;
    int r = read_query(req, &q, err);
    if (r >= 0)
        r = wait_log(req, q, &items, &n, err);
    if (r == -ECANCELED)
        return r;
    if (r < 0)
        return native_sandbox_error(req, r, err);
    jout_open(&j, NULL, '{');
    jout_open(&j, "entries", '[');
    for (size_t i = 0; i < n; i++)
        put_entry(&j, &items[i]);
    jout_close(&j, ']');
    jout_uint(&j, "next", n ? items[n - 1].number : q.after);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

/* ---- what it carried ---- */

static void put_sum(struct jout *j, const struct account_sum *s, const char *events)
{
    jout_uint(j, events, s->connections);
    jout_uint(j, "sent_bytes", s->sent_bytes);
    jout_uint(j, "received_bytes", s->received_bytes);
}

static int by_weight(const void *va, const void *vb)
{
    const struct account_host *a = va, *b = vb;
    uint64_t x = a->sum.sent_bytes + a->sum.received_bytes;
    uint64_t y = b->sum.sent_bytes + b->sum.received_bytes;
    return x > y ? -1 : x < y ? 1 : strcmp(a->host, b->host);
}

static void put_host(struct jout *j, const struct account_host *h)
{
    jout_open(j, NULL, '{');
    jout_str(j, "host", h->host);
    put_sum(j, &h->sum, "connections");
    jout_uint(j, "denied", h->sum.denied);
    jout_time(j, "first", h->first_ms);
    jout_time(j, "last", h->last_ms);
    jout_close(j, '}');
}

int native_network_usage(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct account a;
    static const char *const known[] = { NULL };
    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = network_account(req->core, req->owner, req->args[0], &a, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    if (a.hosts)
        qsort(a.hosts, a.head.n_hosts, sizeof(*a.hosts), by_weight); /* ours: it is not written */
    jout_open(&j, NULL, '{');
    jout_open(&j, "egress", '{');
    put_sum(&j, &a.head.egress, "connections");
    jout_uint(&j, "denied", a.head.egress.denied);
    jout_close(&j, '}');
    jout_open(&j, "previews", '{');
    put_sum(&j, &a.head.previews, "requests");
    jout_close(&j, '}');
    jout_open(&j, "hosts", '[');
    for (size_t i = 0; a.hosts && i < a.head.n_hosts; i++)
        put_host(&j, &a.hosts[i]);
    jout_close(&j, ']');
    jout_open(&j, "other", '{');
    put_sum(&j, &a.head.others, "connections");
    jout_uint(&j, "denied", a.head.others.denied);
    jout_close(&j, '}');
    jout_close(&j, '}');
    network_account_done(req->core, &a);
    return reply_json(req, 200, &j);
}
