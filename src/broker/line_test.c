#include "broker/line.h"

#include "base/check.h"

TEST(who_waits_longest_is_first)
{
    struct line l = { NULL, NULL };
    struct line_place a = { 0 }, b = { 0 }, c = { 0 };
    line_leave(&l, &a);
    CHECK(!l.first);
    line_join(&l, &a);
    line_join(&l, &b);
    line_join(&l, &c);
    line_join(&l, &a); /* it waited already */
    CHECK(l.first == &a && l.last == &c);
    line_leave(&l, &b);
    line_leave(&l, &a);
    CHECK(l.first == &c && l.last == &c);
    line_join(&l, &a);
    CHECK(l.first == &c && l.last == &a);
    line_leave(&l, &c);
    line_leave(&l, &a);
    CHECK(!l.first && !l.last);
}
