#include "net/pins.h"

#include "base/check.h"

static struct address nth(unsigned i)
{
    const uint8_t bytes[4] = { 93, 184, (uint8_t)(i >> 8), (uint8_t)i };
    return address_v4(bytes);
}

TEST(a_name_is_pinned_to_its_address_for_a_while)
{
    _cleanup_(pins_freep) struct pins *p = pins_new();
    struct address a = nth(1), b = nth(2);
    const char *names[PINS_NAMES_MAX];
    CHECK_OK(pins_add(p, "a.test", &a, 0, 100));
    CHECK_OK(pins_add(p, "b.test", &a, 0, 50));
    CHECK(pins_has(p, "a.test", &a, 99));
    CHECK(!pins_has(p, "a.test", &a, 100));
    CHECK(!pins_has(p, "a.test", &b, 0));
    CHECK_EQ(pins_names(p, &a, 0, names), 2);
    CHECK_EQ(pins_names(p, &a, 60, names), 1);
    CHECK_STR(names[0], "a.test");
    CHECK_EQ(pins_names(p, &b, 0, names), 0);
}

TEST(a_pin_is_renewed_and_never_shortened)
{
    _cleanup_(pins_freep) struct pins *p = pins_new();
    struct address a = nth(1);
    CHECK_OK(pins_add(p, "a.test", &a, 0, 100));
    CHECK_OK(pins_add(p, "a.test", &a, 0, 50));
    CHECK(pins_has(p, "a.test", &a, 99));
    CHECK_OK(pins_add(p, "a.test", &a, 0, 200));
    CHECK(pins_has(p, "a.test", &a, 199));
}

TEST(the_pin_that_ends_first_makes_room)
{
    _cleanup_(pins_freep) struct pins *p = pins_new();
    for (unsigned i = 0; i <= PINS_MAX; i++) {
        struct address a = nth(i);
        CHECK_OK(pins_add(p, "a.test", &a, 0, 1000 + i));
    }
    struct address first = nth(0), second = nth(1), last = nth(PINS_MAX);
    CHECK(!pins_has(p, "a.test", &first, 0));
    CHECK(pins_has(p, "a.test", &second, 0));
    CHECK(pins_has(p, "a.test", &last, 0));
    pins_clear(p);
    CHECK(!pins_has(p, "a.test", &last, 0));
}

TEST(the_name_that_was_asked_for_last_is_told_first)
{
    _cleanup_(pins_freep) struct pins *p = pins_new();
    struct address a = nth(1);
    const char *names[PINS_NAMES_MAX];
    CHECK_OK(pins_add(p, "a.test", &a, 0, 100));
    CHECK_OK(pins_add(p, "b.test", &a, 10, 110));
    CHECK_EQ(pins_names(p, &a, 10, names), 2);
    CHECK_STR(names[0], "b.test");
    CHECK_OK(pins_add(p, "a.test", &a, 20, 120)); /* once more */
    CHECK_EQ(pins_names(p, &a, 20, names), 2);
    CHECK_STR(names[0], "a.test");
    CHECK_STR(names[1], "b.test");
    for (int i = 0; i < 2 * PINS_NAMES_MAX; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "n%d.test", i);
        CHECK_OK(pins_add(p, name, &a, 20, i % 2 ? 60 : 200 + i));
    }
    CHECK_EQ(pins_names(p, &a, 20, names), PINS_NAMES_MAX);
    CHECK_STR(names[0], "n62.test");
    CHECK_STR(names[PINS_NAMES_MAX - 1], "n0.test");
}
