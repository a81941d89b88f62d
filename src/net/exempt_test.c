#include "net/exempt.h"

#include <errno.h>

#include "base/check.h"

TEST(exempt_places_are_found_by_range_and_by_name)
{
    static const struct address in = { 32, { 10, 1, 2, 3 } }, out = { 32, { 192, 0, 2, 1 } };
    struct exempt e;
    CHECK_OK(exempt_parse(" 10.0.0.0/8, *.corp.test,git.test ,2001:db8::/32", &e, NULL));
    CHECK(exempt_has(&e, &in, ""));
    CHECK(!exempt_has(&e, &out, ""));
    CHECK(exempt_has(&e, &out, "a.corp.test"));
    CHECK(!exempt_has(&e, &out, "corp.test"));
    CHECK(exempt_has(&e, &out, "git.test"));
    CHECK(!exempt_has(&e, &out, "xgit.test"));
    exempt_done(&e);
}

TEST(a_list_with_something_else_in_it_is_refused)
{
    struct exempt e;
    CHECK_EQ(exempt_parse("a.test, b/c", &e, NULL), -EINVAL);
    CHECK_EQ(exempt_parse("http://a.test", &e, NULL), -EINVAL);
    CHECK_OK(exempt_parse("", &e, NULL));
    CHECK_EQ(e.n_hosts + e.n_ranges, 0);
    exempt_done(&e);
}
