#include "front/e2b/rules.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "net/binding.h"
#include "net/host.h"

#define HOLE "${e2b."
#define SECRET HOLE "secrets."
#define RULES_MAX BINDINGS_MAX

static int wrong(struct err *err, const char *what)
{
    return err_fail(err, FAIL_INVALID_FIELD, "'rules' %s", what);
}

/* ---- hosts ---- */

/* Everything that `inner` matches, `outer` matches as well. */
static bool covers(const char *outer, const char *inner)
{
    if (strcmp(outer, inner) == 0)
        return true;
    if (inner[0] != '*')
        return host_matches(outer, inner);
    return outer[0] == '*' && host_matches(outer, inner + 2);
}

/* Does this rule allow some name that `pattern` matches? The names that are then: one or the other. */
static const char *shared(const struct policy_rule *rule, const char *pattern)
{
    if (!rule->allow)
        return NULL;
    if (rule->target == POLICY_ANYTHING)
        return pattern;
    if (rule->target != POLICY_HOST)
        return NULL;
    return covers(rule->host, pattern) ? pattern : covers(pattern, rule->host) ? rule->host : NULL;
}

/* ---- one header ---- */

static int set(struct binding *b, const char *member, const char *text, struct err *err)
{
    return binding_set(b, member, text, strlen(text), err);
}

/* "Bearer ${e2b.secrets.NAME}": the secret, and what stands around it. */
static int set_secret(struct binding *b, const char *value, const char *hole, struct err *err)
{
    const char *name = hole + strlen(SECRET), *end = strchr(name, '}');
    _cleanup_(buf_done) struct buf format = BUF_INIT(64 * 1024);
    if (!end || strstr(end, HOLE))
        return wrong(err, "may have one ${e2b.secrets.NAME} in a header's value");
    int r = buf_printf(&format, "%.*s{}%s", (int)(hole - value), value, end + 1);
    if (r < 0)
        return r == -EMSGSIZE ? wrong(err, "have a header that is too long")
                              : err_set(err, -r, "cannot keep a header");
    r = binding_set(b, "secret", name, (size_t)(end - name), err);
    return r < 0 ? r : binding_set(b, "format", format.data, format.len, err);
}

static int set_value(struct binding *b, const char *value, struct err *err)
{
    const char *hole = strstr(value, HOLE);
    if (!hole)
        return set(b, "value", value, err);
    if (strncmp(hole, SECRET, strlen(SECRET)) != 0)
        return err_fail(err, FAIL_NOT_SUPPORTED,
                        "'rules' use something other than ${e2b.secrets.NAME}, which is not "
                        "supported by this server");
    return set_secret(b, value, hole, err);
}

static int add_header(struct bindings *bs, const char *host, const char *name, const json_t *value,
                      struct err *err)
{
    _cleanup_(binding_done) struct binding b = BINDING_INIT;
    const char *text = json_string_value(value);
    if (!text || strlen(text) != json_string_length(value))
        return wrong(err, "need texts as values of headers");
    int r = set(&b, "as", "header", err);
    if (r >= 0)
        r = set(&b, "host", host, err);
    if (r >= 0)
        r = set(&b, "header", name, err);
    if (r >= 0)
        r = set_value(&b, text, err);
    if (r >= 0)
        r = binding_finish(&b, err);
    if (r >= 0)
        r = bindings_add(bs, &b, err);
    return r == -E2BIG ? -EINVAL : r;
}

/* ---- all of them ---- */

/* Of two entries for one host the later has the last word, and of two bindings the first. */
static int add_entries(struct bindings *bs, const char *host, const json_t *entries,
                       struct err *err)
{
    int r = 0;
    if (!json_is_array(entries))
        return wrong(err, "must be lists of objects with 'transform', by host");
    for (size_t i = json_array_size(entries); i > 0 && r >= 0; i--) {
        const json_t *transform = json_object_get(json_array_get(entries, i - 1), "transform");
        json_t *headers = json_object_get(transform, "headers"), *value;
        const char *name;
        if (!json_is_object(json_array_get(entries, i - 1)) ||
            (headers && !json_is_object(headers)))
            return wrong(err, "must be lists of objects with 'transform', by host");
        json_object_foreach(headers, name, value) {
            r = r < 0 ? r : add_header(bs, host, name, value, err);
        }
    }
    return r;
}

struct rule {
    char pattern[HOST_SIZE];
    const json_t *entries;
};

/* One host before those below one, and the longer of these before the shorter. */
static int compare(const void *pa, const void *pb)
{
    const struct rule *a = pa, *b = pb;
    bool wild_a = a->pattern[0] == '*', wild_b = b->pattern[0] == '*';
    size_t na = strlen(a->pattern), nb = strlen(b->pattern);
    if (wild_a != wild_b)
        return wild_a - wild_b;
    return na != nb ? (na < nb) - (na > nb) : strcmp(a->pattern, b->pattern);
}

static int sort(const json_t *rules, struct rule list[RULES_MAX], size_t *ret_n, struct err *err)
{
    const char *host;
    json_t *entries;
    size_t n = 0;
    json_object_foreach((json_t *)(uintptr_t)rules, host, entries) {
        if (n == RULES_MAX)
            return wrong(err, "name too many hosts");
        if (host_pattern(host, strlen(host), list[n].pattern) < 0)
            return err_fail(err, FAIL_INVALID_FIELD,
                            "'rules' are for hosts such as api.example.com or *.example.com, and "
                            "'%.64s' is none",
                            host);
        list[n++].entries = entries;
    }
    qsort(list, n, sizeof(*list), compare);
    *ret_n = n;
    return 0;
}

static int add_rule(struct bindings *bs, const struct rule *rule, const struct policy *policy,
                    struct err *err)
{
    struct bindings checked = BINDINGS_INIT;
    int r = add_entries(&checked, rule->pattern, rule->entries, err); /* also what is not kept */
    bindings_done(&checked);
    for (size_t i = 0; i < policy->n_rules && r >= 0; i++) {
        const char *host = shared(&policy->rules[i], rule->pattern);
        if (host)
            r = add_entries(bs, host, rule->entries, err);
        if (host == rule->pattern)
            break; /* all of it */
    }
    return r;
}

int rules_read(const json_t *rules, const struct policy *policy, char **ret_bindings,
               struct err *err)
{
    _cleanup_(bindings_done) struct bindings bs = BINDINGS_INIT;
    _cleanup_(buf_done) struct buf text = BUF_INIT(BINDINGS_TEXT_MAX);
    _cleanup_free_ struct rule *list = calloc(RULES_MAX, sizeof(*list));
    size_t n = 0;
    if (!list)
        return err_set(err, ENOMEM, "cannot keep rules");
    if (!json_is_object(rules))
        return wrong(err, "must be an object");
    int r = sort(rules, list, &n, err);
    for (size_t i = 0; i < n && r >= 0; i++)
        r = add_rule(&bs, &list[i], policy, err);
    if (r < 0)
        return r;
    r = bindings_text(&bs, &text);
    if (r < 0)
        return r == -EMSGSIZE ? wrong(err, "are too long") : err_set(err, -r, "cannot keep rules");
    *ret_bindings = text.len ? buf_steal(&text) : NULL;
    return 0;
}

/* ---- telling ---- */

static bool is_header(const struct binding *b)
{
    return b->as == BINDING_HEADER || b->as == BINDING_BEARER;
}

static void put_header(struct jout *j, const struct binding *b)
{
    _cleanup_(buf_done) struct buf value = BUF_INIT(64 * 1024);
    const char *format = b->as == BINDING_BEARER ? "Bearer {}" : b->format;
    const char *hole = strstr(format, "{}");
    if (!hole)
        return;
    int r = buf_append(&value, format, (size_t)(hole - format));
    if (r >= 0)
        r = b->literal ? buf_puts(&value, b->literal) : buf_printf(&value, SECRET "%s}", b->secret);
    if (r >= 0)
        r = buf_puts(&value, hole + 2);
    if (r >= 0)
        jout_member(j, b->as == BINDING_BEARER ? "Authorization" : b->header, value.data);
}

/* Those of one host follow each other, unless others set them. */
static bool told_before(const struct bindings *bs, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (is_header(&bs->items[i]) && strcmp(bs->items[i].host, bs->items[at].host) == 0)
            return true;
    return false;
}

void rules_put(struct jout *j, const char *bindings)
{
    _cleanup_(bindings_done) struct bindings bs = BINDINGS_INIT;
    if (bindings && bindings_parse(bindings, strlen(bindings), &bs, NULL) < 0)
        return;
    jout_open(j, "rules", '{');
    for (size_t i = 0; i < bs.n; i++) {
        if (!is_header(&bs.items[i]) || told_before(&bs, i))
            continue;
        jout_open(j, bs.items[i].host, '[');
        jout_open(j, NULL, '{');
        jout_open(j, "transform", '{');
        jout_open(j, "headers", '{');
        for (size_t k = i; k < bs.n; k++)
            if (is_header(&bs.items[k]) && strcmp(bs.items[k].host, bs.items[i].host) == 0)
                put_header(j, &bs.items[k]);
        jout_close(j, '}');
        jout_close(j, '}');
        jout_close(j, '}');
        jout_close(j, ']');
    }
    jout_close(j, '}');
}
