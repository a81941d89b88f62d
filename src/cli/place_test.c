#include "cli/place.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/cleanup.h"

TEST(places_are_told_apart)
{
    static const struct {
        const char *text, *sandbox, *path;
    } cases[] = {
        { "file", NULL, "file" },       { "/a/b", NULL, "/a/b" }, { "box:/etc/x", "box", "/etc/x" },
        { "box:rel", "box", "rel" },    { "box:", "box", "." },   { "./a:b", NULL, "./a:b" },
        { "dir/a:b", NULL, "dir/a:b" }, { ":x", NULL, ":x" },     { "-", NULL, "-" },
        { "box:a:b", "box", "a:b" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_(place_done) struct place p = { 0 };
        place_parse(cases[i].text, &p);
        CHECK_STR(p.path, cases[i].path);
        CHECK((p.sandbox == NULL) == (cases[i].sandbox == NULL));
        if (p.sandbox)
            CHECK_STR(p.sandbox, cases[i].sandbox);
    }
}

TEST(names_and_joins)
{
    static const char *const names[][2] = {
        { "/a/b", "b" }, { "/a/b//", "b" }, { "b", "b" }, { "/", "" }, { "a/", "a" }
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        _cleanup_free_ char *name = place_name(names[i][0]);
        CHECK_STR(name, names[i][1]);
    }
    _cleanup_free_ char *a = place_join("/x", "y"), *b = place_join("/x/", "y");
    CHECK_STR(a, "/x/y");
    CHECK_STR(b, "/x/y");
}
