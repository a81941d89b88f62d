#include "net/binding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/binding_private.h"
#include "net/host.h"

#define SECRET_NAME_MAX 64 /* as long as the daemon's names */
#define LITERAL_MAX 4096
#define TEXT_MAX 1024
#define LABEL_MAX 63

static const char *const as_names[] = {
    [BINDING_BEARER] = "bearer", [BINDING_HEADER] = "header", [BINDING_QUERY] = "query",
    [BINDING_BASIC] = "basic",   [BINDING_SIGV4] = "sigv4",   [BINDING_GIT] = "git",
};

static const char *const answer_names[] = {
    [BINDING_FULL] = "full",
    [BINDING_JSON] = "json-only",
    [BINDING_STATUS] = "status",
    [BINDING_NONE] = "none",
};

const char *binding_answer_name(enum binding_answer answer)
{
    return answer_names[answer];
}

const char *binding_as_name(enum binding_as as)
{
    return as_names[as];
}

/* ---- what members may be ---- */

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool all_of(const char *p, size_t n, size_t max, const char *also)
{
    for (size_t i = 0; i < n; i++)
        if (!is_alnum(p[i]) && (p[i] == '\0' || !strchr(also, p[i])))
            return false;
    return n > 0 && n <= max;
}

static bool printable(const char *p, size_t n, size_t max)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)p[i] < ' ' || p[i] == 0x7f)
            return false;
    return n <= max;
}

static bool secret_ok(const char *p, size_t n)
{
    return all_of(p, n, SECRET_NAME_MAX, "._-") && is_alnum(p[0]);
}

/* As the daemon keeps names. */
static int set_secret(struct binding *b, const char *p, size_t n)
{
    if (!secret_ok(p, n))
        return -EINVAL;
    b->secret = strndup(p, n);
    for (char *c = b->secret; c && *c; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    return b->secret ? 0 : -ENOMEM;
}

static bool literal_ok(const char *p, size_t n)
{
    return n > 0 && printable(p, n, LITERAL_MAX) && p[0] != ' ' && p[n - 1] != ' ';
}

/* Fields that say where a message goes or ends, or that the broker must decide itself. */
static const char *const own_fields[] = {
    "host",  "content-length", "transfer-encoding", "connection",          "upgrade",
    "te",    "trailer",        "keep-alive",        "accept-encoding",     "expect",
    "range", "content-type",   "content-encoding",  "proxy-authorization", "proxy-connection",
};

static bool header_ok(const char *p, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(own_fields); i++)
        if (strlen(own_fields[i]) == n && strncasecmp(own_fields[i], p, n) == 0)
            return false;
    return all_of(p, n, 128, "!#$%&'*+-.^_`|~");
}

static bool format_ok(const char *p, size_t n)
{
    const char *at = n >= 2 ? memmem(p, n, "{}", 2) : NULL;
    if (!at || memmem(at + 2, n - (size_t)(at + 2 - p), "{}", 2))
        return false;
    return printable(p, n, TEXT_MAX) && p[0] != ' ' && p[n - 1] != ' ';
}

static bool query_ok(const char *p, size_t n)
{
    return all_of(p, n, 128, "-._~[]$");
}

static bool user_ok(const char *p, size_t n)
{
    return printable(p, n, 256) && !memchr(p, ':', n);
}

static bool access_key_ok(const char *p, size_t n)
{
    return all_of(p, n, 128, "_-.+/=");
}

static bool scope_ok(const char *p, size_t n)
{
    return all_of(p, n, 64, "-_");
}

static bool label_ok(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(p[i] >= 'a' && p[i] <= 'z') && !(p[i] >= '0' && p[i] <= '9') && p[i] != '-')
            return false;
    return n > 0 && n <= LABEL_MAX && p[0] != '-' && p[n - 1] != '-';
}

static int set_host(struct binding *b, const char *p, size_t n)
{
    char host[HOST_SIZE];
    size_t zone = strlen(BINDING_ZONE);
    if (host_pattern(p, n, host) < 0 || !strchr(host, '.'))
        return -EINVAL;
    size_t len = strlen(host);
    if (len >= zone && strcmp(host + len - zone, BINDING_ZONE) == 0)
        return -EINVAL;
    b->host = strdup(host);
    return b->host ? 0 : -ENOMEM;
}

static int set_port(struct binding *b, const char *p, size_t n)
{
    unsigned v = 0;
    for (size_t i = 0; i < n && i < 6; i++) {
        if (p[i] < '0' || p[i] > '9')
            return -EINVAL;
        v = v * 10 + (unsigned)(p[i] - '0');
    }
    if (n == 0 || n > 5 || p[0] == '0' || v > UINT16_MAX)
        return -EINVAL;
    b->port = (uint16_t)v;
    return 0;
}

/* TRACE gives a request back with what was added to it, CONNECT opens what nobody reads. */
static bool method_ok(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((p[i] < 'A' || p[i] > 'Z') && p[i] != '-')
            return false;
    return n > 0 && n < BINDING_METHOD_SIZE && p[0] != '-' &&
           !(n == 5 && memcmp(p, "TRACE", n) == 0) && !(n == 7 && memcmp(p, "CONNECT", n) == 0);
}

static int set_methods(struct binding *b, const char *p, size_t n)
{
    for (size_t at = 0; at <= n;) {
        const char *comma = memchr(p + at, ',', n - at);
        size_t len = comma ? (size_t)(comma - p) - at : n - at;
        if (b->n_methods == BINDING_METHODS_MAX || !method_ok(p + at, len))
            return -EINVAL;
        memcpy(b->methods[b->n_methods], p + at, len);
        b->methods[b->n_methods++][len] = '\0';
        at += len + 1;
    }
    return 0;
}

static int set_path(struct binding *b, const char *p, size_t n)
{
    _cleanup_(buf_done) struct buf path = BUF_INIT(3 * TEXT_MAX);
    if (n > TEXT_MAX || binding_pattern(p, n, &path) < 0)
        return -EINVAL;
    b->path = buf_steal(&path);
    return b->path ? 0 : -ENOMEM;
}

/* The index of p among the names; -EINVAL. */
static int find_name(const char *const *names, size_t n_names, const char *p, size_t n)
{
    for (size_t i = 0; i < n_names; i++)
        if (strlen(names[i]) == n && memcmp(names[i], p, n) == 0)
            return (int)i;
    return -EINVAL;
}

static int set_as(struct binding *b, const char *p, size_t n)
{
    int i = find_name(as_names, ARRAY_LEN(as_names), p, n);
    if (i >= 0)
        b->as = (enum binding_as)i;
    return i < 0 ? i : 0;
}

static int set_answer(struct binding *b, const char *p, size_t n)
{
    int i = find_name(answer_names, ARRAY_LEN(answer_names), p, n);
    if (i >= 0)
        b->answer = (enum binding_answer)i;
    return i < 0 ? i : 0;
}

static int set_transparent(struct binding *b, const char *p, size_t n)
{
    b->transparent = n == 3 && memcmp(p, "yes", n) == 0;
    return b->transparent || (n == 2 && memcmp(p, "no", n) == 0) ? 0 : -EINVAL;
}

#define ALL_FORMS (~0u)
#define FORM(as_) (1u << BINDING_##as_)

/* A text of the binding's own is `at` and `ok`; the others are read by `set`. */
static const struct member {
    const char *name;
    size_t at;
    bool (*ok)(const char *p, size_t n);
    int (*set)(struct binding *b, const char *p, size_t n);
    unsigned forms; /* of `as` that it belongs to */
    const char *rule;
} members[] = {
#define TEXT(field_) offsetof(struct binding, field_)
    { "secret", 0, NULL, set_secret, ALL_FORMS, "must be the name of a secret" },
    { "value", TEXT(literal), literal_ok, NULL, ALL_FORMS,
      "must have 1 to 4096 bytes, no control characters, and no blank at its ends" },
    { "host", 0, NULL, set_host, ALL_FORMS,
      "must be a host's full name such as api.example.com or *.example.com" },
    { "port", 0, NULL, set_port, ALL_FORMS, "must be a port from 1 to 65535" },
    { "methods", 0, NULL, set_methods, ALL_FORMS,
      "must be at most 8 methods in capitals such as GET, POST; never TRACE or CONNECT" },
    { "path", 0, NULL, set_path, ALL_FORMS,
      "must be a path such as /v1/*, without dots as segments, query or fragment" },
    { "as", 0, NULL, set_as, ALL_FORMS, "must be bearer, header, query, basic, sigv4 or git" },
    { "header", TEXT(header), header_ok, NULL, FORM(HEADER),
      "must be the name of a header, and none that says where a message goes or ends" },
    { "format", TEXT(format), format_ok, NULL, FORM(HEADER),
      "must hold {} once, where the value goes, and no control characters" },
    { "query", TEXT(query), query_ok, NULL, FORM(QUERY), "must be the name of a query parameter" },
    { "user", TEXT(user), user_ok, NULL, FORM(BASIC) | FORM(GIT),
      "must be a user's name without ':' and control characters" },
    { "access_key", TEXT(access_key), access_key_ok, NULL, FORM(SIGV4),
      "must be an AWS access key id" },
    { "region", TEXT(region), scope_ok, NULL, FORM(SIGV4), "must be a region such as us-east-1" },
    { "service", TEXT(service), scope_ok, NULL, FORM(SIGV4), "must be a service such as s3" },
    { "name", TEXT(name), label_ok, NULL, ALL_FORMS,
      "must be at most 63 of a-z, 0-9 and '-': it is reached as http://NAME.warren" },
    { "transparent", 0, NULL, set_transparent, ALL_FORMS, "must be yes or no" },
    { "answer", 0, NULL, set_answer, ALL_FORMS, "must be full, json-only, status or none" },
#undef TEXT
};

/* ---- reading ---- */

int binding_wrong(struct err *err, const char *p, size_t n, const char *what)
{
    char shown[81];
    n = n < sizeof(shown) - 1 ? n : sizeof(shown) - 1;
    for (size_t i = 0; i < n; i++)
        shown[i] = p[i] >= ' ' && p[i] < 0x7f ? p[i] : '?';
    shown[n] = '\0';
    return err_fail(err, FAIL_INVALID_BINDING, "'%s' %s", shown, what);
}

static char **text_at(const struct binding *b, const struct member *m)
{
    return (char **)((uintptr_t)b + m->at);
}

static int set_text(struct binding *b, const struct member *m, const char *p, size_t n)
{
    if (!m->ok(p, n))
        return -EINVAL;
    char *text = strndup(p, n);
    if (!text)
        return -ENOMEM;
    *text_at(b, m) = text;
    return 0;
}

int binding_set(struct binding *b, const char *member, const char *p, size_t n, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const struct member *m = &members[i];
        if (strcmp(m->name, member) != 0)
            continue;
        if (b->given & 1u << i)
            return binding_wrong(err, member, strlen(member), "is said twice");
        b->given |= 1u << i;
        int r = m->set ? m->set(b, p, n) : set_text(b, m, p, n);
        if (r == -ENOMEM)
            return err_set(err, ENOMEM, "cannot allocate a binding");
        return r < 0 ? binding_wrong(err, member, strlen(member), m->rule) : 0;
    }
    return binding_wrong(err, member, strlen(member),
                         "is no member of a binding: secret or value, host, port, methods, path, "
                         "as, header, format, query, user, access_key, region, service, name, "
                         "transparent, answer");
}

static int lacks(struct err *err, const char *what)
{
    return err_fail(err, FAIL_INVALID_BINDING, "a binding %s", what);
}

static int check_forms(const struct binding *b, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        if ((b->given & 1u << i) && !(members[i].forms & 1u << b->as)) {
            char what[64];
            (void)snprintf(what, sizeof(what), "does not belong to as=%s", as_names[b->as]);
            return binding_wrong(err, members[i].name, strlen(members[i].name), what);
        }
    if (b->as == BINDING_HEADER && !b->header)
        return lacks(err, "with as=header needs 'header', its name, such as x-api-key");
    if (b->as == BINDING_QUERY && !b->query)
        return lacks(err, "with as=query needs 'query', the parameter's name");
    if (b->as == BINDING_BASIC && !b->user)
        return lacks(err, "with as=basic needs 'user'; it may be empty");
    if (b->as == BINDING_SIGV4 && (!b->access_key || !b->region || !b->service))
        return lacks(err, "with as=sigv4 needs 'access_key', 'region' and 'service'");
    return 0;
}

static int otherwise(char **text, const char *usual)
{
    if (!*text)
        *text = strdup(usual);
    return *text ? 0 : -ENOMEM;
}

int binding_finish(struct binding *b, struct err *err)
{
    if (!b->secret == !b->literal)
        return lacks(err, "needs 'secret', the name of one, or 'value', a text that is none; "
                          "not both");
    if (!b->host)
        return lacks(err, "needs 'host': where requests go that may carry it");
    int r = check_forms(b, err);
    if (r < 0)
        return r;
    if (b->name && b->host[0] == '*')
        return lacks(err, "with a 'name' needs one host, not a pattern");
    if (!b->name && !b->transparent)
        return lacks(err, "that is not transparent needs a 'name' to be reached by");
    b->port = b->port ? b->port : 443;
    r = otherwise(&b->path, "/*");
    if (r == 0 && b->as == BINDING_HEADER)
        r = otherwise(&b->format, "{}");
    if (r == 0 && b->as == BINDING_GIT)
        r = otherwise(&b->user, "x-access-token");
    return r < 0 ? err_set(err, ENOMEM, "cannot allocate a binding") : 0;
}

/* ---- more than one ---- */

static void wipe(char *p, size_t n)
{
    if (p)
        explicit_bzero(p, n);
    free(p);
}

void binding_done(struct binding *b)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        if (members[i].ok)
            free(*text_at(b, &members[i]));
    free(b->secret);
    free(b->host);
    free(b->path);
    wipe(b->value, b->n_value);
    *b = (struct binding)BINDING_INIT;
}

void bindings_done(struct bindings *bs)
{
    for (size_t i = 0; i < bs->n; i++)
        binding_done(&bs->items[i]);
    free(bs->items);
    *bs = (struct bindings)BINDINGS_INIT;
}

int bindings_add(struct bindings *bs, struct binding *b, struct err *err)
{
    if (bs->n >= BINDINGS_MAX)
        return err_fail_as(err, E2BIG, FAIL_INVALID_BINDING, "there are more than %d bindings",
                           BINDINGS_MAX);
    const struct binding *same = b->name ? bindings_named(bs, b->name) : NULL;
    if (same && (strcmp(same->host, b->host) != 0 || same->port != b->port))
        return binding_wrong(err, b->name, strlen(b->name),
                             "is the name of two places; bindings of one name have one host and "
                             "port");
    struct binding *items = reallocarray(bs->items, bs->n + 1, sizeof(*items));
    if (!items)
        return err_set(err, ENOMEM, "cannot allocate a binding");
    bs->items = items;
    bs->items[bs->n++] = *b;
    *b = (struct binding)BINDING_INIT;
    return 0;
}
