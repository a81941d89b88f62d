#include "broker/cookie.h"

#include <string.h>

#include "base/check.h"

static struct text text(const char *s)
{
    return (struct text){ s, strlen(s) };
}

static const char *stripped(const char *s)
{
    static char out[256];
    struct buf b = BUF_INIT(sizeof(out) - 1);
    CHECK_OK(cookie_strip(text(s), &b));
    (void)snprintf(out, sizeof(out), "%.*s", (int)b.len, b.len ? b.data : "");
    buf_done(&b);
    return out;
}

static const char *confined(const char *s)
{
    static char out[256];
    struct buf b = BUF_INIT(sizeof(out) - 1);
    CHECK_OK(cookie_confine(text(s), &b));
    (void)snprintf(out, sizeof(out), "%.*s", (int)b.len, b.len ? b.data : "");
    buf_done(&b);
    return out;
}

TEST(cookie_finds_a_value_by_its_whole_name)
{
    struct text v = cookie_find(text("a=1; warren_preview=abc; b=2"), "warren_preview");
    CHECK(v.n == 3 && memcmp(v.p, "abc", 3) == 0);
    CHECK_EQ(cookie_find(text("xwarren_preview=abc"), "warren_preview").n, 0);
    CHECK_EQ(cookie_find(text("warren_preview"), "warren_preview").n, 0);
    CHECK_EQ(cookie_find(text("warren_preview="), "warren_preview").n, 0);
    CHECK_EQ(cookie_find(text(""), "warren_preview").n, 0);
}

TEST(cookie_strips_warrens_own_and_nothing_else)
{
    CHECK_STR(stripped("a=1; warren_preview=x; b=2"), "a=1; b=2");
    CHECK_STR(stripped("warren_preview=x"), "");
    CHECK_STR(stripped(" WARREN_preview=x ;a=1"), "a=1");
    CHECK_STR(stripped("__Host-warren_preview=x; __Host-a=1"), "__Host-a=1");
    CHECK_STR(stripped("warren_preview =x; a=\"b; c\""), "a=\"b; c\"");
    CHECK_STR(stripped(";;a;;"), "a");
}

TEST(cookie_stays_with_its_host)
{
    CHECK_STR(confined("a=b; Path=/; Domain=localhost; HttpOnly"), "a=b; Path=/; HttpOnly");
    CHECK_STR(confined("a=b;domain = .x.test;DOMAIN=y"), "a=b");
    CHECK_STR(confined("domain=x; Path=/"), "domain=x; Path=/");
    CHECK_STR(confined("a"), "a");
    CHECK(cookie_may_set(text("a=b")));
    CHECK(!cookie_may_set(text("warren_preview=b; Path=/")));
    CHECK(!cookie_may_set(text(" Warren_x = b")));
    CHECK(!cookie_may_set(text("=warren_preview=b")));
    CHECK(!cookie_may_set(text("= =__Host-warren_preview=b; Path=/")));
    CHECK(cookie_may_set(text("=b")));
    CHECK(!cookie_may_set(text("")));
}
