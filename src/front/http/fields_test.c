#include "front/http/fields.h"

#include <errno.h>

#include "base/check.h"
#include "core/sandbox.h"

enum mood { MOOD_GLAD, MOOD_SAD };
static const char *const moods[] = { "glad", "sad", NULL };

struct thing {
    char *name;
    uint32_t pids, millis;
    uint64_t bytes;
    int64_t timeout_ms;
    bool on;
    enum mood mood;
    char **argv;
    struct pairs env;
};

#define ROW(member_, name_, ...) FIELD(struct thing, member_, name_, __VA_ARGS__)
static const struct field table[] = {
    ROW(name, "name", as_text, .max = 10, .null_ok = true),
    ROW(pids, "pids", as_u32, .min = 4, .max = 32768),
    ROW(millis, "cpus", as_thousandths, .min = 0.05, .max = 8),
    ROW(bytes, "mb", as_mib, .min = 16, .max = 1048576),
    ROW(timeout_ms, "timeout_s", as_seconds, .max = 1e9, .null_ok = true),
    ROW(on, "on", as_bool),
    ROW(mood, "mood", as_choice, .choices = moods),
    ROW(argv, "argv", as_texts),
    ROW(env, "env", as_env),
};

static void thing_done(struct thing *t)
{
    free(t->name);
    for (char **a = t->argv; a && *a; a++)
        free(*a);
    free(t->argv);
    pairs_done(&t->env);
}

static int read_thing(const char *text, struct thing *t, uint32_t *seen, struct err *err)
{
    json_t *object = NULL;
    int r = fields_parse(text, strlen(text), &object, err);
    if (r >= 0)
        r = fields_decode(object, table, ARRAY_LEN(table), t, seen, err);
    json_decref(object);
    return r;
}

TEST(an_object_becomes_a_struct)
{
    _cleanup_(thing_done) struct thing t = { .pids = 512 };
    uint32_t seen = 0;
    struct err err = ERR_INIT;

    CHECK_OK(read_thing("{\"name\":\"x\",\"cpus\":0.5,\"mb\":512,\"timeout_s\":0.0001,\"on\":true,"
                        "\"mood\":\"sad\",\"argv\":[\"a\",\"\"],\"env\":{\"A\":\"1\",\"B\":\"\"}}",
                        &t, &seen, &err));
    CHECK_STR(t.name, "x");
    CHECK_EQ(t.millis, 500);
    CHECK_EQ(t.bytes, 512 << 20);
    CHECK_EQ(t.timeout_ms, 1);
    CHECK(t.on);
    CHECK_EQ(t.mood, MOOD_SAD);
    CHECK_STR(t.argv[0], "a");
    CHECK_STR(t.argv[1], "");
    CHECK(t.argv[2] == NULL);
    CHECK_STR(pairs_get(&t.env, "A"), "1");
    CHECK_EQ(t.pids, 512); /* absent: as it was */
    CHECK_EQ(seen & 2, 0);
}

TEST(an_empty_body_is_an_empty_object)
{
    _cleanup_(thing_done) struct thing t = { 0 };
    uint32_t seen = 7;

    CHECK_OK(read_thing("", &t, &seen, NULL));
    CHECK_EQ(seen, 0);
}

TEST(each_wrong_body_has_its_own_code)
{
    static const struct {
        const char *text, *what;
    } cases[] = {
        { "{", "invalid_json" },
        { "[]", "invalid_json" },
        { "1", "invalid_json" },
        { "{} {}", "invalid_json" },
        { "{\"name\":\"a\",\"name\":\"b\"}", "invalid_json" },
        { "{\"name\":\"\\u0000\"}", "invalid_json" },
        { "{\"name\":\"\xff\"}", "invalid_json" },
        { "{\"pids\":1e999}", "invalid_json" },
        { "{\"pids\":99999999999999999999}", "invalid_json" },
        { "{\"nmae\":1}", "unknown_field" },
        { "{\"name\":1}", "invalid_field" },
        { "{\"name\":\"01234567890\"}", "invalid_field" },
        { "{\"pids\":\"4\"}", "invalid_field" },
        { "{\"pids\":null}", "invalid_field" },
        { "{\"pids\":3}", "invalid_field" },
        { "{\"pids\":-1}", "invalid_field" },
        { "{\"pids\":4.5}", "invalid_field" },
        { "{\"pids\":1e300}", "invalid_field" },
        { "{\"cpus\":0}", "invalid_field" },
        { "{\"timeout_s\":-1}", "invalid_field" },
        { "{\"timeout_s\":true}", "invalid_field" },
        { "{\"on\":1}", "invalid_field" },
        { "{\"mood\":\"angry\"}", "invalid_field" },
        { "{\"mood\":0}", "invalid_field" },
        { "{\"argv\":[]}", "invalid_field" },
        { "{\"argv\":\"ls\"}", "invalid_field" },
        { "{\"argv\":[\"a\",1]}", "invalid_field" },
        { "{\"env\":[]}", "invalid_field" },
        { "{\"env\":{\"A\":1}}", "invalid_field" },
        { "{\"env\":{\"\":\"x\"}}", "invalid_field" },
        { "{\"env\":{\"A=B\":\"x\"}}", "invalid_field" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_(thing_done) struct thing t = { 0 };
        uint32_t seen = 0;
        struct err err = ERR_INIT;
        CHECK(read_thing(cases[i].text, &t, &seen, &err) < 0);
        CHECK_STR(failure_name(err.failure), cases[i].what);
        CHECK(err.msg[0] != '\0');
    }
}

TEST(null_stands_for_nothing_where_that_means_something)
{
    _cleanup_(thing_done) struct thing t = { 0 };
    uint32_t seen = 0;

    CHECK_OK(read_thing("{\"name\":null,\"timeout_s\":null}", &t, &seen, NULL));
    CHECK(t.name == NULL);
    CHECK_EQ(seen, 1 | 16);
}

TEST(deep_and_crowded_documents_are_refused)
{
    const size_t n = 1 << 20;
    _cleanup_free_ char *text = malloc(n);
    json_t *object = NULL;
    struct err err = ERR_INIT;

    CHECK(text != NULL);
    memset(text, '[', n);
    CHECK(fields_parse(text, 60000, &object, &err) < 0); /* too deep for the parser */
    CHECK_STR(failure_name(err.failure), "invalid_json");
    CHECK_EQ(fields_parse(text, n, &object, &err), -E2BIG);
    /* The same marks inside a text cost nothing and are fine. */
    memset(text, ',', n);
    memcpy(text, "{\"a\":\"", 6);
    memcpy(text + n - 2, "\"}", 2);
    CHECK_OK(fields_parse(text, n, &object, &err));
    json_decref(object);
}
