#include "cli/toml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static int parse(const char *text, json_t **ret_root, struct err *err)
{
    json_t *lines = NULL;
    int r = toml_parse(text, strlen(text), ret_root, &lines, err);
    json_decref(lines);
    return r;
}

TEST(what_a_project_file_needs_is_read)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        { "", "{}" },
        { "# nothing\n\n   # more\r\n", "{}" },
        { "a = 1\nb = -2\nc = +3\nd = 1_000", "{\"a\":1,\"b\":-2,\"c\":3,\"d\":1000}" },
        { "a = 0.5\nb = 1e3", "{\"a\":0.5,\"b\":1000.0}" },
        { "a = true # yes\nb=false", "{\"a\":true,\"b\":false}" },
        { "a = \"x\\ty \\u00e9 \\\"z\\\" # no comment\"",
          "{\"a\":\"x\\ty \\u00e9 \\\"z\\\" # no comment\"}" },
        { "a = 'C:\\no escapes'", "{\"a\":\"C:\\\\no escapes\"}" },
        { "a = \"\"\n\"b c\" = ''", "{\"a\":\"\",\"b c\":\"\"}" },
        { "a = [1, 2,3]", "{\"a\":[1,2,3]}" },
        { "a = [\n  'x', # one\n\n  'y',\n]\nb = []", "{\"a\":[\"x\",\"y\"],\"b\":[]}" },
        { "a = 1\n[env]\nB = 'x'\n[ t ]\n", "{\"a\":1,\"env\":{\"B\":\"x\"},\"t\":{}}" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *root = NULL;
        struct err err = ERR_INIT;
        CHECK_OK(parse(cases[i].text, &root, &err));
        json_t *want = json_loads(cases[i].json, 0, NULL);
        CHECK(json_equal(root, want));
        json_decref(root);
        json_decref(want);
    }
}

TEST(what_it_does_not_need_is_refused_with_its_line)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "a", "line 1" },
        { "a = ", "line 1: a value is missing" },
        { "\na = b", "line 2: 'b' is no value" },
        { "a = 1 2", "more on this line" },
        { "a = 1\na = 2", "line 2: 'a' is there a second time" },
        { "[a]\n[a]", "line 2: 'a' is there a second time" },
        { "a = 1\n[a]", "second time" },
        { "a.b = 1", "dots" },
        { "[a.b]", "dots" },
        { "[[a]]", "array of tables" },
        { "a = {b = 1}", "braces" },
        { "a = [[1]]", "array in an array" },
        { "a = [1 2]", "comma" },
        { "a = [1\n\n", "does not end" },
        { "a = [,]", "value is missing" },
        { "a = \"x", "does not end" },
        { "a = \"x\ny\"", "does not end" },
        { "a = \"\"\"x\"\"\"", "one line" },
        { "a = \"\\q\"", "escapes" },
        { "a = \"\\u00\"", "hexadecimal" },
        { "a = \"\\ud800\"", "no character" },
        { "a = \"\\u0000\"", "no character" },
        { "a = 'x\x01'", "control" },
        { "# \x02", "control" },
        { "a = \"\xff\"", "UTF-8" },
        { "a = 1979-05-27", "no value" },
        { "a = 0x10", "no value" },
        { "a = 007", "no value" },
        { "a = 1__0", "no value" },
        { "a = 1.", "no value" },
        { "a = inf", "no value" },
        { "a = 99999999999999999999", "too large" },
        { "= 1", "line 1" },
        { "\"\" = 1", "empty" },
        { "[a", "missing" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *root = NULL;
        struct err err = ERR_INIT;
        CHECK_EQ(parse(cases[i].text, &root, &err), -EINVAL);
        if (!strstr(err.msg, cases[i].says))
            (void)fprintf(stderr, "%s: %s\n", cases[i].text, err.msg);
        CHECK(strstr(err.msg, cases[i].says) != NULL);
        CHECK(root == NULL);
    }
}

TEST(a_file_that_ends_anywhere_is_read_or_refused)
{
    static const char text[] = "a = [1, 'x', \"\\u00e9\"]\n[t]\n\"k\" = 1.5 # c\n";
    for (size_t n = 0; n < sizeof(text); n++) {
        json_t *root = NULL, *lines = NULL;
        char *exact = malloc(n ? n : 1); /* so that a sanitizer sees a byte too many */
        memcpy(exact, text, n);
        (void)toml_parse(exact, n, &root, &lines, NULL);
        json_decref(root);
        json_decref(lines);
        free(exact);
    }
}

TEST(each_value_knows_its_line)
{
    static const char text[] = "a = 1\n\nb = [\n1,\n2]\n[t]\nc = 1\n";
    json_t *root = NULL, *lines = NULL;
    CHECK_OK(toml_parse(text, strlen(text), &root, &lines, NULL));
    json_t *want = json_loads("{\"a\":1,\"b\":3,\"t\":{\"\":6,\"c\":7}}", 0, NULL);
    CHECK(json_equal(lines, want));
    json_decref(root);
    json_decref(lines);
    json_decref(want);
}
