/* What a sandbox may reach, in E2B's words: what is allowed, else not what is denied, else everything;
 * by which way (proxy.h), and what its requests carry (rules.h). It is kept as the sandbox's own network and bindings, and what
 * is told is read from there, whoever set it. */
#include <errno.h>
#include <string.h>

#include "core/network.h"
#include "front/e2b/e2b.h"
#include "front/e2b/proxy.h"
#include "front/e2b/rules.h"
#include "net/policy.h"

#define ALL "0.0.0.0/0" /* as these clients write everything, of any family */

bool e2b_is_empty(const json_t *v)
{
    return !v || json_is_null(v) || (json_is_object(v) && json_object_size(v) == 0) ||
           (json_is_array(v) && json_array_size(v) == 0);
}

/* ---- reading ---- */

struct egress {
    struct buf text; /* rules */
    bool names;      /* some of them are of names */
    bool closed;     /* what no rule allows is denied */
};

static int wrong(struct err *err, const char *member, const char *what)
{
    return err_fail(err, FAIL_INVALID_FIELD, "'%s' %s", member, what);
}

static int keep(struct egress *e, const char *action, const char *target, const char *protocol,
                struct err *err)
{
    int r = buf_printf(&e->text, "%s %s%s\n", action, target, protocol);
    if (r == -EMSGSIZE)
        return err_fail(err, FAIL_INVALID_NETWORK, "the network has too many entries");
    return r < 0 ? err_set(err, -r, "cannot keep a network") : 0;
}

static int add_entry(struct egress *e, const char *member, bool allow, const char *entry,
                     struct err *err)
{
    struct range range;
    bool is_range = range_parse(entry, strlen(entry), &range) == 0;
    if (strpbrk(entry, " \t\r\n") || !*entry)
        return wrong(err, member, "is a list of addresses, ranges and names of hosts");
    if (!is_range && !allow)
        return wrong(err, member,
                     "takes addresses and ranges alone; to deny names, deny " ALL
                     " and allow those that may be reached");
    if (!allow && strcmp(entry, ALL) == 0) {
        e->closed = true;
        return 0;
    }
    if (is_range && strcmp(entry, ALL) == 0)
        return keep(e, "allow", "*", "", err);
    e->names |= !is_range;
    return keep(e, allow ? "allow" : "deny", entry, allow && is_range ? " any" : "", err);
}

static int add_entries(struct egress *e, const json_t *object, const char *member, bool allow,
                       struct err *err)
{
    const json_t *list = json_object_get(object, member), *entry;
    size_t i;
    int r = 0;
    if (list && !json_is_array(list) && !json_is_null(list))
        return wrong(err, member, "must be a list");
    json_array_foreach(list, i, entry) {
        const char *text = json_string_value(entry);
        if (!text || strlen(text) != json_string_length(entry))
            return wrong(err, member, "must be a list of texts");
        r = add_entry(e, member, allow, text, err);
        if (r < 0)
            break;
    }
    return r;
}

static int add_lists(struct egress *e, const json_t *lists, struct err *err)
{
    int r = add_entries(e, lists, "allowOut", true, err);
    if (r >= 0)
        r = add_entries(e, lists, "denyOut", false, err);
    if (r >= 0 && e->names && !e->closed)
        r = err_fail(err, FAIL_INVALID_NETWORK,
                     "names in 'allowOut' need " ALL " in 'denyOut': all else would be allowed "
                     "as well");
    return r;
}

/* A word where one says it all. */
static int settle(struct egress *e, const json_t *proxy, char **ret_network, struct err *err)
{
    int r;
    if (e->text.len == 0)
        r = buf_puts(&e->text, e->closed ? "none" : "open");
    else
        r = keep(e, e->closed ? "deny" : "allow", "*", "", err);
    if (r >= 0)
        r = egress_proxy_read(proxy, e->names, &e->text, err);
    if (r >= 0)
        r = network_check(e->text.data, err);
    if (r < 0)
        return err->code ? r : err_set(err, -r, "cannot keep a network");
    *ret_network = buf_steal(&e->text);
    return *ret_network ? 0 : err_set(err, ENOMEM, "cannot keep a network");
}

static int refuse_missing_parts(const json_t *lists, struct err *err)
{
    if (e2b_is_empty(json_object_get(lists, "httpsPorts")))
        return 0;
    return err_fail(err, FAIL_NOT_SUPPORTED,
                    "'network.httpsPorts' is not supported by this server");
}

static int read_rules(const json_t *rules, const char *network, char **ret_bindings,
                      struct err *err)
{
    _cleanup_(policy_done) struct policy p = POLICY_INIT;
    if (e2b_is_empty(rules))
        return 0;
    int r = network_rules(network, &p, err);
    return r < 0 ? r : rules_read(rules, &p, ret_bindings, err);
}

/* `object` says whether there is a network at all, `lists` of what kind. */
static int read_egress(const json_t *object, const json_t *lists, char **ret_network,
                       char **ret_bindings, struct err *err)
{
    const json_t *internet = json_object_get(object, "allow_internet_access");
    struct egress e = { .text = BUF_INIT(NETWORK_TEXT_MAX), .closed = json_is_false(internet) };
    int r = 0;
    if (internet && !json_is_boolean(internet) && !json_is_null(internet))
        r = wrong(err, "allow_internet_access", "must be true or false");
    if (r >= 0 && lists && !json_is_object(lists) && !json_is_null(lists))
        r = wrong(err, "network", "must be an object");
    if (r >= 0)
        r = refuse_missing_parts(lists, err);
    if (r >= 0)
        r = add_lists(&e, lists, err);
    if (r >= 0)
        r = settle(&e, json_object_get(lists, "egressProxy"), ret_network, err);
    if (r >= 0)
        r = read_rules(json_object_get(lists, "rules"), *ret_network, ret_bindings, err);
    buf_done(&e.text);
    return r;
}

int e2b_read_network(const json_t *object, struct sandbox_spec *spec, struct err *err)
{
    const json_t *lists = json_object_get(object, "network");
    _cleanup_free_ char *network = NULL, *bindings = NULL;
    int r = read_egress(object, lists, &network, &bindings, err);
    if (r < 0)
        return r;
    /* Who asks for nothing of its own gets what the template says. */
    bool asked = json_is_object(lists) && !e2b_is_empty(json_object_get(lists, "egressProxy"));
    if (!spec->network || asked || strcmp(network, "open") != 0) {
        free(spec->network);
        spec->network = take_ptr(network);
    }
    if (bindings) {
        free(spec->bindings);
        spec->bindings = take_ptr(bindings);
    }
    return 0;
}

/* ---- telling ---- */

static void put_targets(struct jout *j, const char *member, const struct policy *p, bool allow,
                        bool closed)
{
    char text[RANGE_TEXT_SIZE];
    jout_open(j, member, '[');
    for (size_t i = 0; i < p->n_rules; i++) {
        const struct policy_rule *rule = &p->rules[i];
        bool last = rule->target == POLICY_ANYTHING && i + 1 == p->n_rules;
        if (rule->allow != allow || last)
            continue;
        jout_str(j, NULL,
                 rule->target == POLICY_HOST    ? rule->host
                 : rule->target == POLICY_RANGE ? range_text(&rule->range, text)
                                                : ALL);
    }
    if (closed && !allow)
        jout_str(j, NULL, ALL);
    jout_close(j, ']');
}

void e2b_put_network(struct jout *j, const struct sandbox *s)
{
    _cleanup_(policy_done) struct policy p = POLICY_INIT;
    bool none = network_is_none(s->spec.network);
    if (!none && network_rules(s->spec.network, &p, NULL) < 0)
        return;
    const struct policy_rule *last = p.n_rules ? &p.rules[p.n_rules - 1] : NULL;
    bool closed = !last || !last->allow || last->target != POLICY_ANYTHING;
    jout_bool(j, "allowInternetAccess", !none);
    jout_open(j, "network", '{');
    put_targets(j, "allowOut", &p, true, closed);
    put_targets(j, "denyOut", &p, false, closed);
    rules_put(j, s->spec.bindings);
    egress_proxy_put(j, s->spec.network);
    e2b_put_access(j, s);
    jout_close(j, '}');
}

/* ---- changing ---- */

/* To these clients "not found" is the sandbox, or its template. */
int e2b_no_secret(struct err *err, int r)
{
    if (r != -ENOENT || err->failure != FAIL_SECRET_NOT_FOUND)
        return r;
    struct err why = *err;
    return err_fail(err, FAIL_INVALID_FIELD, "%.300s", why.msg);
}

int e2b_sandbox_network(struct request *req, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, changed = { 0 };
    _cleanup_(sandbox_spec_done) struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    int r = request_json(req, &object, err);
    if (r < 0)
        return r;
    r = sandbox_get(req->core, req->owner, req->args[0], &s, err);
    if (r < 0)
        return e2b_failed(err, r, req->args[0]);
    if (s.state != SANDBOX_RUNNING)
        return err_fail_as(err, EBUSY, FAIL_SANDBOX_NOT_RUNNING, "sandbox '%s' is paused", s.id);
    r = read_egress(object, object, &spec.network, &spec.bindings, err);
    if (r < 0)
        return r;
    r = sandbox_update(req->core, req->owner, s.id, &spec,
                       CHANGE_NETWORK | CHANGE_BINDINGS | CHANGE_CUT, &changed, err);
    r = e2b_no_secret(err, r);
    return r < 0 ? e2b_failed(err, r, req->args[0]) : reply_empty(req);
}
