#include "base/hash.h"

#include "base/check.h"

TEST(hashes_are_the_published_ones)
{
    CHECK(hash_text("") == UINT64_C(0xcbf29ce484222325));
    CHECK(hash_text("a") == UINT64_C(0xaf63dc4c8601ec8c));
    CHECK(hash_text("foobar") == UINT64_C(0x85944171f73967e8));
    CHECK_EQ(hash_short("foobar"), 0xbf9cf968);
}

TEST(pieces_are_hashed_as_one_text)
{
    CHECK(hash_more(hash_text("foo"), "bar", 3) == hash_text("foobar"));
}
