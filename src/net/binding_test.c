#include "net/binding.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"

static struct bindings lines(const char *text)
{
    struct bindings bs = BINDINGS_INIT;
    struct err err = ERR_INIT;
    if (bindings_parse(text, strlen(text), &bs, &err) < 0)
        fail_msg("%s", err.msg);
    return bs;
}

static char *written(const char *line)
{
    _cleanup_(binding_done) struct binding b = BINDING_INIT;
    struct buf out = BUF_INIT(BINDING_TEXT_MAX);
    struct err err = ERR_INIT;
    if (binding_parse(line, strlen(line), &b, &err) < 0)
        fail_msg("%s", err.msg);
    CHECK_OK(binding_text(&b, &out));
    return buf_steal(&out);
}

TEST(a_line_is_written_in_one_form_that_is_read_again)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
        { "OpenAI@api.openai.com", "secret=openai host=api.openai.com port=443 path=/* as=bearer" },
        { "openai@API.OpenAI.com:8443/v1/* as=bearer methods=POST,GET",
          "secret=openai host=api.openai.com port=8443 methods=POST,GET path=/v1/* as=bearer" },
        { "  k@a.test\tas=header  header=X-Key ",
          "secret=k host=a.test port=443 path=/* as=header header=X-Key format={}" },
        { "value=\"a \\\"b\\\" \\\\\" host=*.a.test as=header header=x format=\"<{} >\"",
          "value=\"a \\\"b\\\" \\\\\" host=*.a.test port=443 path=/* as=header header=x "
          "format=\"<{} >\"" },
        { "k@a.test as=basic user=\"\"",
          "secret=k host=a.test port=443 path=/* as=basic user=\"\"" },
        { "k@a.test/%7euser/%2f as=git",
          "secret=k host=a.test port=443 path=/~user/%2F as=git user=x-access-token" },
        { "k@a.test as=query query=key name=a transparent=no",
          "secret=k host=a.test port=443 path=/* as=query query=key name=a transparent=no" },
        { "k@s3.a.test as=sigv4 access_key=AKIA region=eu-west-1 service=s3",
          "secret=k host=s3.a.test port=443 path=/* as=sigv4 access_key=AKIA region=eu-west-1 "
          "service=s3" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *once = written(cases[i].from), *twice = written(once);
        CHECK_STR(once, cases[i].to);
        CHECK_STR(twice, once);
        free(once);
        free(twice);
    }
}

TEST(what_is_no_binding_is_refused_with_what_to_write)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        { "", "needs 'secret'" },
        { "k", "SECRET@HOST" },
        { "k@", "'host' must be" },
        { "k@localhost", "'host' must be" },
        { "k@10.0.0.1", "'host' must be" },
        { "k@a.warren", "'host' must be" },
        { "k@*.com", "'host' must be" },
        { "@a.test", "'secret' must be" },
        { "k/x@a.test", "'secret' must be" },
        { "k@a.test value=x", "not both" },
        { "k@a.test host=b.test", "'host' is said twice" },
        { "k@a.test:0", "'port' must be" },
        { "k@a.test:65536", "'port' must be" },
        { "k@a.test as=cookie", "'as' must be" },
        { "k@a.test as=header", "needs 'header'" },
        { "k@a.test as=header header=Host", "'header' must be" },
        { "k@a.test as=header header=a:b", "'header' must be" },
        { "k@a.test as=header header=a format=x", "'format' must hold {}" },
        { "k@a.test as=header header=a format={}{}", "'format' must hold {}" },
        { "k@a.test as=bearer header=a", "'header' does not belong to as=bearer" },
        { "k@a.test as=query", "needs 'query'" },
        { "k@a.test as=basic", "needs 'user'" },
        { "k@a.test as=basic user=a:b", "'user' must be" },
        { "k@a.test as=sigv4 region=a", "needs 'access_key'" },
        { "k@a.test methods=GET,", "'methods' must be" },
        { "k@a.test methods=get", "'methods' must be" },
        { "k@a.test methods=TRACE", "'methods' must be" },
        { "k@a.test path=v1", "'path' must be" },
        { "k@a.test/a/../b", "'path' must be" },
        { "k@a.test/a?b", "'path' must be" },
        { "k@*.a.test name=x", "needs one host" },
        { "k@a.test transparent=no", "needs a 'name'" },
        { "k@a.test name=A", "'name' must be" },
        { "k@a.test name=a.b", "'name' must be" },
        { "k@a.test user=\"x", "has quotes" },
        { "k@a.test user=\"x\"y", "has quotes" },
        { "k@a.test color=red", "is no member" },
        { "k@a.test as=header header=a format=\"{}\r\"", "'format' must hold" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct binding b = BINDING_INIT;
        struct err err = ERR_INIT;
        CHECK_EQ(binding_parse(cases[i].line, strlen(cases[i].line), &b, &err), -EINVAL);
        CHECK_STR(failure_name(err.failure), "invalid_binding");
        if (!strstr(err.msg, cases[i].says))
            fail_msg("%s: %s", cases[i].line, err.msg);
    }
}

static int matches(const struct bindings *bs, const char *host, const char *method,
                   const char *target)
{
    const struct binding *fits[BINDINGS_MAX];
    struct binding_request q = { .host = host,
                                 .port = 443,
                                 .method = method,
                                 .n_method = strlen(method),
                                 .target = target,
                                 .n_target = strlen(target) };
    return bindings_match(bs, &q, fits);
}

TEST(a_request_fits_by_host_method_and_path)
{
    _cleanup_(bindings_done) struct bindings bs =
        lines("k@a.test/v1/* methods=GET,POST\nk@*.b.test/x/*/y\nk@c.test/p%2fq\nk@c.test/e*t%2A");
    static const struct {
        const char *host, *method, *target;
        int n;
    } cases[] = {
        { "a.test", "GET", "/v1/", 1 },         { "a.test", "POST", "/v1/a/b?c=/../d", 1 },
        { "a.test", "GET", "/%761/x", 1 },      { "a.test", "GET", "/v1", 0 },
        { "a.test", "get", "/v1/", 0 },         { "a.test", "DELETE", "/v1/", 0 },
        { "a.test", "GET", "/V1/", 0 },         { "b.a.test", "GET", "/v1/", 0 },
        { "d.b.test", "PUT", "/x/1/y", 1 },     { "d.b.test", "PUT", "/x/1/2/y", 0 },
        { "d.b.test", "PUT", "/x/1%2f2/y", 0 }, { "d.b.test", "PUT", "/x/1%5C2/y", 0 },
        { "d.b.test", "PUT", "/x//y", 0 },      { "d.b.test", "PUT", "/x/1/y/", 0 },
        { "c.test", "GET", "/p%2Fq", 1 },       { "c.test", "GET", "/p/q", 0 },
        { "c.test", "GET", "/east*", 1 },       { "c.test", "GET", "/east%2a", 1 },
        { "c.test", "GET", "/eastx", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (matches(&bs, cases[i].host, cases[i].method, cases[i].target) != cases[i].n)
            fail_msg("%s %s", cases[i].method, cases[i].target);
}

TEST(a_path_that_may_be_read_as_another_fits_nothing)
{
    _cleanup_(bindings_done) struct bindings bs = lines("k@a.test");
    static const char *const targets[] = {
        "/v1/..",
        "/v1/../x",
        "/v1/./x",
        "/v1/%2e%2E/x",
        "/v1/.%2e/x",
        "/v1/..;a/x",
        "/v1/..%2fx",
        "/v1/%2e%2e%5cx",
        "/v1/a\\..\\b",
        "/v1/%252e%252e/x",
        "/v1/%25252e%2e/x",
        "/v1/%",
        "/v1/%2",
        "/v1/%zz",
        "/v1/%00",
        "/a#b",
        "/a b",
        "v1",
        "",
        "*",
        "https://a.test/v1",
        "/\x80",
    };
    CHECK_EQ(matches(&bs, "a.test", "GET", "/v1/.../..a/a..;b"), 1);
    for (size_t i = 0; i < ARRAY_LEN(targets); i++)
        if (matches(&bs, "a.test", "GET", targets[i]) != -EBADMSG)
            fail_msg("%s", targets[i]);
    CHECK_EQ(matches(&bs, "a.test", "TRACE", "/"), -EBADMSG);
}

TEST(a_git_binding_is_for_what_git_asks)
{
    _cleanup_(bindings_done) struct bindings bs = lines("k@a.test/me/* as=git");
    CHECK_EQ(matches(&bs, "a.test", "GET", "/me/r.git/info/refs?service=git-upload-pack"), 1);
    CHECK_EQ(matches(&bs, "a.test", "GET", "/me/r/info/refs?service=git-receive-pack"), 1);
    CHECK_EQ(matches(&bs, "a.test", "POST", "/me/r.git/git-upload-pack"), 1);
    CHECK_EQ(matches(&bs, "a.test", "POST", "/me/r.git/git-receive-pack"), 1);
    CHECK_EQ(matches(&bs, "a.test", "GET", "/you/r.git/info/refs?service=git-upload-pack"), 0);
    CHECK_EQ(matches(&bs, "a.test", "GET", "/me/r.git/info/refs"), 0);
    CHECK_EQ(matches(&bs, "a.test", "GET", "/me/r.git/info/refs?service=git-upload-pack&a"), 0);
    CHECK_EQ(matches(&bs, "a.test", "GET", "/me/settings"), 0);
    CHECK_EQ(matches(&bs, "a.test", "PUT", "/me/r.git/git-upload-pack"), 0);
}

TEST(a_name_leads_to_its_bindings_and_a_host_to_those_that_are_transparent)
{
    _cleanup_(bindings_done) struct bindings bs =
        lines("k@a.test name=n transparent=no\nl@a.test name=n\nm@a.test:8443");
    const struct binding *fits[BINDINGS_MAX];
    struct binding_request q = {
        .name = "n", .method = "GET", .n_method = 3, .target = "/", .n_target = 1
    };
    CHECK_EQ(bindings_match(&bs, &q, fits), 2);
    CHECK_STR(fits[0]->secret, "k");
    CHECK_STR(fits[1]->secret, "l");
    q.host = "a.test";
    q.port = 443;
    CHECK_EQ(bindings_match(&bs, &q, fits), 1);
    CHECK_STR(fits[0]->secret, "l");
    CHECK_STR(bindings_named(&bs, "n")->host, "a.test");
    CHECK(!bindings_named(&bs, "o"));
    CHECK(bindings_host(&bs, "a.test", 8443));
    CHECK(!bindings_host(&bs, "a.test", 80));
    CHECK(bindings_resolve(&bs, "a.test"));
    CHECK(!bindings_resolve(&bs, "b.test"));
}

TEST(one_name_is_one_place)
{
    struct bindings bs = BINDINGS_INIT;
    static const char text[] = "k@a.test name=n\nk@b.test name=n";
    struct err err = ERR_INIT;
    CHECK_EQ(bindings_parse(text, sizeof(text) - 1, &bs, &err), -EINVAL);
    CHECK(strstr(err.msg, "two places") != NULL);
}

TEST(there_are_at_most_so_many)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(BINDINGS_TEXT_MAX);
    struct bindings bs = BINDINGS_INIT;
    for (int i = 0; i <= BINDINGS_MAX; i++)
        CHECK_OK(buf_puts(&text, "k@a.test\n"));
    CHECK_EQ(bindings_parse(text.data, text.len, &bs, NULL), -E2BIG);
}

TEST(values_go_to_the_broker_and_no_line_break_into_a_header)
{
    _cleanup_(bindings_done) struct bindings bs =
        lines("k@a.test\nl@a.test as=basic user=u\nvalue=lit host=a.test as=header header=x\n"
              "gone@a.test");
    _cleanup_(bindings_done) struct bindings got = BINDINGS_INIT;
    _cleanup_(buf_done) struct buf packed = BUF_INIT(BINDINGS_PACKED_MAX);
    bs.items[0].value = strdup("s3cr3t");
    bs.items[0].n_value = 6;
    bs.items[1].value = strdup("a\nb");
    bs.items[1].n_value = 3;
    CHECK(!binding_carries(&bs.items[0], "a\nb", 3));
    CHECK(!binding_carries(&bs.items[0], "", 0));
    CHECK_OK(bindings_pack(&bs, &packed));
    CHECK(!strstr(packed.data, "s3cr3t"));
    CHECK_OK(bindings_unpack(packed.data, packed.len, &got, NULL));
    CHECK_EQ(got.n, 4);
    CHECK_EQ(got.items[0].n_value, 6);
    CHECK_MEM(got.items[0].value, "s3cr3t", 6);
    CHECK_MEM(got.items[1].value, "a\nb", 3);
    CHECK_STR(got.items[2].value, "lit");
    CHECK(!got.items[3].value);
    static const char *const bad[] = { "k@a.test\n",        "k@a.test\n=!\n", "k@a.test\n=\n",
                                       "k@a.test\n=YQpi\n", "k@a.test\n-",    "k\n-\n" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct bindings none = BINDINGS_INIT;
        CHECK_EQ(bindings_unpack(bad[i], strlen(bad[i]), &none, NULL), -EINVAL);
    }
}
