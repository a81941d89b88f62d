#include "base/arena.h"

#include <errno.h>

#include "base/check.h"

TEST(an_arena_gives_zeroed_memory_until_its_limit)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT(100);
    char *p = arena_alloc(&a, 60);
    CHECK(p && p[0] == 0 && p[59] == 0);
    CHECK(!arena_alloc(&a, 60));
    CHECK(arena_alloc(&a, 16));
}

TEST(an_arena_keeps_what_is_larger_than_a_block)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT(1 << 20);
    char *text = arena_strdup(&a, "small");
    char *large = arena_alloc(&a, 100000);
    CHECK(large);
    memset(large, 'x', 100000);
    CHECK_STR(text, "small");
    CHECK_STR(arena_strndup(&a, "abcdef", 3), "abc");
}

TEST(an_array_in_an_arena_grows)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT(1 << 20);
    int *items = NULL;
    for (int i = 0; i < 1000; i++) {
        items = arena_grow(&a, items, (size_t)i, sizeof(*items));
        CHECK(items);
        items[i] = i;
    }
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(items[i], i);
}
