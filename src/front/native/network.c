/* A sandbox's network in JSON, and the log of what it tried to reach. */
#include <errno.h>
#include <string.h>

#include "core/network.h"
#include "front/http/fields.h"
#include "front/native/native.h"
#include "net/policy.h"

static int wrong_shape(const struct field *f, struct err *err)
{
    return err_name(err, EINVAL, "invalid_network",
                    "'%s' must be \"none\", \"agents\", \"open\", or an object with a list of "
                    "'rules' such as \"allow *.example.com 443\"",
                    f->name);
}

static int add_rule(struct buf *text, const json_t *rule, const struct field *f, struct err *err)
{
    const char *p = json_string_value(rule);
    if (!p)
        return wrong_shape(f, err);
    if (strchr(p, '\n') || strlen(p) != json_string_length(rule))
        return err_name(err, EINVAL, "invalid_network", "a rule is one line");
    int r = buf_printf(text, "%s\n", p);
    if (r == -EMSGSIZE)
        return err_name(err, EINVAL, "invalid_network", "the rules are too long");
    return r < 0 ? err_set(err, -r, "cannot keep the rules") : 0;
}

static int read_rules(const json_t *object, const struct field *f, char **ret_text, struct err *err)
{
    const json_t *rules = json_object_get(object, "rules"), *rule;
    _cleanup_(buf_done) struct buf text = BUF_INIT(NETWORK_TEXT_MAX);
    size_t i;
    if (!json_is_array(rules) || json_object_size(object) != 1)
        return wrong_shape(f, err);
    json_array_foreach(rules, i, rule)
    {
        int r = add_rule(&text, rule, f, err);
        if (r < 0)
            return r;
    }
    *ret_text = text.len ? buf_steal(&text) : strdup("none");
    return *ret_text ? 0 : err_set(err, ENOMEM, "out of memory");
}

int native_as_network(const json_t *v, const struct field *f, void *at, struct err *err)
{
    char **member = at, *text = NULL;
    int r = 0;
    if (json_is_object(v))
        r = read_rules(v, f, &text, err);
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

void native_put_network(struct jout *j, const struct sandbox_spec *spec)
{
    const char *p = spec->network;
    if (network_is_none(p) || !strchr(p, ' ')) {
        jout_str(j, "network", network_is_none(p) ? "none" : p);
        return;
    }
    jout_open(j, "network", '{');
    jout_open(j, "rules", '[');
    while (*p) {
        size_t n = strcspn(p, "\n");
        jout_strn(j, NULL, p, n);
        p += n + (p[n] == '\n');
    }
    jout_close(j, ']');
    jout_close(j, '}');
}

static const char *reason(const struct broker_record *r)
{
    static const char *const reasons[] = { [POLICY_BY_RULE] = "rule",
                                           [POLICY_BY_DEFAULT] = "no_rule",
                                           [POLICY_BY_PLACE] = "reserved_address",
                                           [POLICY_BY_MISMATCH] = "name_mismatch" };
    return r->why < ARRAY_LEN(reasons) ? reasons[r->why] : "no_rule";
}

static void put_entry(struct jout *j, const struct network_entry *e)
{
    const struct broker_record *r = &e->record;
    jout_open(j, NULL, '{');
    jout_uint(j, "number", e->number);
    jout_time(j, "time", r->wall_ms);
    jout_str(j, "kind", r->question ? "dns" : "connection");
    jout_str(j, "protocol", r->udp ? "udp" : "tcp");
    jout_str(j, "name", r->name[0] ? r->name : NULL);
    jout_str(j, "address", r->address[0] ? r->address : NULL);
    if (r->question)
        jout_null(j, "port");
    else
        jout_uint(j, "port", r->port);
    jout_str(j, "verdict", r->allowed ? "allowed" : "denied");
    jout_str(j, "reason", reason(r));
    jout_str(j, "rule", r->rule[0] ? r->rule : NULL);
    jout_str(j, "error", r->failure ? strerrorname_np((int)r->failure) : NULL);
    jout_uint(j, "sent_bytes", r->sent_bytes);
    jout_uint(j, "received_bytes", r->received_bytes);
    jout_close(j, '}');
}

int native_network_log(struct request *req, struct err *err)
{
    _cleanup_free_ struct network_entry *items = NULL;
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    uint64_t after = 0;
    size_t n = 0;
    static const char *const known[] = { "after", NULL };
    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = request_param_u64(req, "after", 0, UINT64_MAX, &after, err);
    if (r >= 0)
        r = network_log(req->core, req->owner, req->args[0], after, &items, &n, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    jout_open(&j, NULL, '{');
    jout_open(&j, "entries", '[');
    for (size_t i = 0; i < n; i++)
        put_entry(&j, &items[i]);
    jout_close(&j, ']');
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}
