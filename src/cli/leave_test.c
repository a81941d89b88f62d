#include "cli/leave.h"

#include <string.h>

#include "base/check.h"

/* What reaches the program of what is typed; *ret_left: whether the person left. */
static size_t type(struct leave *l, const char *keys, char *out, bool *ret_left)
{
    char in[64], *at;
    size_t n;
    memcpy(in + 1, keys, strlen(keys));
    *ret_left = leave_typed(l, in, strlen(keys), &at, &n);
    memcpy(out, at, n);
    out[n] = '\0';
    return n;
}

TEST(keys_that_leave_are_not_passed_on)
{
    static const struct {
        const char *keys, *passed;
        bool left;
    } cases[] = {
        { "ls\n", "ls\n", false },
        { "ls\x1d", "ls", true },
        { "\x1d", "", true },
        { "a\x10\x11", "a", true },
        { "a\x11z", "a\x11z", false },
        { "a\x10z", "a\x10z", false },
        { "\x10\x10\x11", "\x10", true },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct leave l = { 0 };
        char out[64];
        bool left;
        (void)type(&l, cases[i].keys, out, &left);
        CHECK_STR(out, cases[i].passed);
        CHECK_EQ(left, cases[i].left);
    }
}

TEST(the_first_of_two_keys_waits_for_the_second)
{
    struct leave l = { 0 };
    char out[64];
    bool left;
    CHECK_EQ(type(&l, "a\x10", out, &left), 1);
    CHECK(!left);
    (void)type(&l, "b", out, &left);
    CHECK_STR(out, "\x10"
                   "b");
    CHECK_EQ(type(&l, "\x10", out, &left), 0);
    CHECK_EQ(type(&l, "\x11", out, &left), 0);
    CHECK(left);
}
