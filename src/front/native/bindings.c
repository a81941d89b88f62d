/* A sandbox's bindings in JSON. */
#include <errno.h>
#include <string.h>

#include "front/http/fields.h"
#include "front/native/native.h"
#include "net/binding.h"

static int wrong_shape(const char *member, struct err *err)
{
    return err_fail(err, FAIL_INVALID_BINDING, "'%.64s' must be %s", member,
                    strcmp(member, "methods") == 0       ? "a list of methods such as [\"POST\"]"
                    : strcmp(member, "port") == 0        ? "a number from 1 to 65535"
                    : strcmp(member, "transparent") == 0 ? "true or false"
                                                         : "a text");
}

static int set_methods(struct binding *b, const json_t *list, struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(1024);
    const json_t *method;
    size_t i;
    if (!json_is_array(list))
        return wrong_shape("methods", err);
    json_array_foreach(list, i, method) {
        const char *p = json_string_value(method);
        if (!p || strchr(p, ',') || buf_printf(&text, "%s%s", i ? "," : "", p) < 0)
            return wrong_shape("methods", err);
    }
    return text.len ? binding_set(b, "methods", text.data, text.len, err) : 0;
}

static int set_port(struct binding *b, const json_t *v, struct err *err)
{
    char text[24];
    if (!json_is_integer(v))
        return wrong_shape("port", err);
    int n = snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(v));
    return binding_set(b, "port", text, (size_t)n, err);
}

/* null is as if it were not there. */
static int set_member(struct binding *b, const char *member, const json_t *v, struct err *err)
{
    if (json_is_null(v))
        return 0;
    if (strcmp(member, "methods") == 0)
        return set_methods(b, v, err);
    if (strcmp(member, "port") == 0)
        return set_port(b, v, err);
    if (strcmp(member, "transparent") == 0)
        return !json_is_boolean(v) ? wrong_shape(member, err)
                                   : binding_set(b, member, json_is_true(v) ? "yes" : "no",
                                                 json_is_true(v) ? 3 : 2, err);
    if (!json_is_string(v))
        return wrong_shape(member, err);
    return binding_set(b, member, json_string_value(v), json_string_length(v), err);
}

/* An object with members, or the line that people type. */
static int read_one(const json_t *v, struct binding *b, struct err *err)
{
    const char *member;
    json_t *value;
    if (json_is_string(v))
        return binding_parse(json_string_value(v), json_string_length(v), b, err);
    if (!json_is_object(v))
        return err_fail(err, FAIL_INVALID_BINDING,
                        "must be an object such as {\"secret\": \"NAME\", \"host\": "
                        "\"api.example.com\", \"as\": \"bearer\"}");
    json_object_foreach((json_t *)(uintptr_t)v, member, value) {
        int r = set_member(b, member, value, err);
        if (r < 0)
            return r;
    }
    return binding_finish(b, err);
}

int native_as_bindings(const json_t *v, const struct field *f, void *at, struct err *err)
{
    _cleanup_(bindings_done) struct bindings bs = BINDINGS_INIT;
    _cleanup_(buf_done) struct buf text = BUF_INIT(BINDINGS_TEXT_MAX);
    char **member = at;
    if (!json_is_array(v))
        return err_fail(err, FAIL_INVALID_BINDING, "'%s' must be a list of bindings", f->name);
    for (size_t i = 0; i < json_array_size(v); i++) {
        _cleanup_(binding_done) struct binding b = BINDING_INIT;
        int r = read_one(json_array_get(v, i), &b, err);
        if (r >= 0)
            r = bindings_add(&bs, &b, err);
        if (r < 0)
            return err_wrap(err, r == -E2BIG ? -EINVAL : r, "'%s', number %zu", f->name, i + 1);
    }
    int r = bindings_text(&bs, &text);
    if (r < 0)
        return err_set(err, -r, "cannot keep the bindings");
    free(*member);
    *member = text.len ? buf_steal(&text) : NULL;
    return 0;
}

static void put_if(struct jout *j, const char *key, const char *text)
{
    if (text)
        jout_str(j, key, text);
}

static void put_one(struct jout *j, const struct binding *b)
{
    jout_open(j, NULL, '{');
    put_if(j, "secret", b->secret);
    put_if(j, "value", b->literal);
    jout_str(j, "host", b->host);
    jout_uint(j, "port", b->port);
    jout_open(j, "methods", '[');
    for (size_t i = 0; i < b->n_methods; i++)
        jout_str(j, NULL, b->methods[i]);
    jout_close(j, ']');
    jout_str(j, "path", b->path);
    jout_str(j, "as", binding_as_name(b->as));
    put_if(j, "header", b->header);
    put_if(j, "format", b->format);
    put_if(j, "query", b->query);
    put_if(j, "user", b->user);
    put_if(j, "access_key", b->access_key);
    put_if(j, "region", b->region);
    put_if(j, "service", b->service);
    put_if(j, "name", b->name);
    jout_bool(j, "transparent", b->transparent);
    jout_str(j, "answer", binding_answer_name(b->answer));
    jout_close(j, '}');
}

void native_put_bindings(struct jout *j, const struct sandbox_spec *spec)
{
    _cleanup_(bindings_done) struct bindings bs = BINDINGS_INIT;
    if (spec->bindings)
        (void)bindings_parse(spec->bindings, strlen(spec->bindings), &bs, NULL);
    jout_open(j, "bindings", '[');
    for (size_t i = 0; i < bs.n; i++)
        put_one(j, &bs.items[i]);
    jout_close(j, ']');
}
