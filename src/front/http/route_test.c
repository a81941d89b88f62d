#include "front/http/route.h"

#include "base/check.h"

static const struct route table[] = {
    { .method = "GET", .pattern = "/v1/things" },
    { .method = "POST", .pattern = "/v1/things" },
    { .method = "GET", .pattern = "/v1/things/{id}" },
    { .method = "DELETE", .pattern = "/v1/things/{id}/parts/{n}" },
};

static enum route_found find(const char *method, const char *target, struct uri *u,
                             const struct route **ret, const char **args, char *allow)
{
    CHECK_OK(uri_parse(target, strlen(target), u, NULL));
    return route_find(table, ARRAY_LEN(table), method, u, ret, args, allow);
}

TEST(a_route_is_found_by_method_and_path)
{
    static const struct {
        const char *method, *target;
        enum route_found found;
        int row;
    } cases[] = {
        { "GET", "/v1/things", ROUTE_FOUND, 0 },
        { "HEAD", "/v1/things", ROUTE_FOUND, 0 },
        { "POST", "/v1/things?x=1", ROUTE_FOUND, 1 },
        { "GET", "/v1/things/a", ROUTE_FOUND, 2 },
        { "DELETE", "/v1/things/a/parts/3", ROUTE_FOUND, 3 },
        { "PUT", "/v1/things", ROUTE_OTHER_METHOD, 0 },
        { "get", "/v1/things", ROUTE_OTHER_METHOD, 0 },
        { "HEAD", "/v1/things/a/parts/3", ROUTE_OTHER_METHOD, 0 },
        { "GET", "/v1/things/", ROUTE_UNKNOWN, 0 },
        { "GET", "/v1//things", ROUTE_UNKNOWN, 0 },
        { "GET", "/", ROUTE_UNKNOWN, 0 },
        { "GET", "/v1", ROUTE_UNKNOWN, 0 },
        { "GET", "/v1/things/a/b/c/d/e/f", ROUTE_UNKNOWN, 0 },
        { "GET", "/v1/thing", ROUTE_UNKNOWN, 0 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_(uri_done) struct uri u = { 0 };
        const struct route *route = NULL;
        const char *args[ROUTE_ARGS_MAX];
        char allow[ROUTE_ALLOW_MAX];
        CHECK_EQ(find(cases[i].method, cases[i].target, &u, &route, args, allow), cases[i].found);
        if (cases[i].found == ROUTE_FOUND)
            CHECK(route == &table[cases[i].row]);
    }
}

TEST(braces_take_a_decoded_segment_each)
{
    _cleanup_(uri_done) struct uri u = { 0 };
    const struct route *route = NULL;
    const char *args[ROUTE_ARGS_MAX];
    char allow[ROUTE_ALLOW_MAX];

    CHECK_EQ(find("DELETE", "/v1/things/a%2Fb/parts/7", &u, &route, args, allow), ROUTE_FOUND);
    CHECK_STR(args[0], "a/b");
    CHECK_STR(args[1], "7");
}

TEST(other_methods_of_a_path_are_told)
{
    _cleanup_(uri_done) struct uri u = { 0 };
    const struct route *route = NULL;
    const char *args[ROUTE_ARGS_MAX];
    char allow[ROUTE_ALLOW_MAX];

    CHECK_EQ(find("PUT", "/v1/things", &u, &route, args, allow), ROUTE_OTHER_METHOD);
    CHECK_STR(allow, "GET, HEAD, POST");
}
