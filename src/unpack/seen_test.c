#include "unpack/seen.h"

#include "base/check.h"

TEST(an_entry_is_its_directory_and_its_name)
{
    struct seen s;
    CHECK_OK(seen_init(&s));
    for (uint64_t dir = 0; dir < 5000; dir++)
        CHECK_OK(seen_add(&s, dir, dir % 2 ? "odd" : "even"));
    CHECK_EQ(s.n, 5000);
    for (uint64_t dir = 0; dir < 5000; dir++) {
        CHECK(seen_has(&s, dir, dir % 2 ? "odd" : "even"));
        CHECK(!seen_has(&s, dir, dir % 2 ? "even" : "odd"));
    }
    CHECK_OK(seen_add(&s, 1, "odd"));
    CHECK_EQ(s.n, 5000);
    seen_done(&s);
}
