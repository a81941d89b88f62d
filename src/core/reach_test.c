#include "core/reach.h"

#include <errno.h>

#include "base/check.h"

static int rank(const char *asker, const char *text, const char *owner, const char *name,
                bool public)
{
    struct reach r = reach_of(asker, text);
    return reach_rank(&r, owner, name, public);
}

TEST(a_bare_name_is_ones_own_then_the_operators_then_nobodys)
{
    CHECK(rank("blue", "base", "blue", "base", false) >
          rank("blue", "base", OWNER_DEFAULT, "base", true));
    CHECK(rank("blue", "base", OWNER_DEFAULT, "base", true) > 0);
    CHECK_EQ(rank("blue", "base", OWNER_DEFAULT, "base", false), 0);
    CHECK_EQ(rank("blue", "base", "acme", "base", true), 0);
}

TEST(another_teams_public_thing_is_reached_by_its_team)
{
    CHECK(rank("blue", "acme/base", "acme", "base", true) > 0);
    CHECK_EQ(rank("blue", "acme/base", "acme", "base", false), 0);
    CHECK_EQ(rank("blue", "acme/base", "red", "base", true), 0);
    CHECK(rank("blue", "default/base", OWNER_DEFAULT, "base", true) > 0);
    CHECK(rank("blue", "blue/base", "blue", "base", false) > 0);
    CHECK_EQ(rank("blue", "/base", "acme", "base", true), 0);
    CHECK_EQ(rank("blue", "acme/", "acme", "base", true), 0);
}

TEST(a_name_with_a_slash_of_ones_own_comes_before_a_teams)
{
    CHECK(rank("blue", "acme/base", "blue", "acme/base", false) >
          rank("blue", "acme/base", OWNER_DEFAULT, "acme/base", true));
    CHECK(rank("blue", "acme/base", OWNER_DEFAULT, "acme/base", true) >
          rank("blue", "acme/base", "acme", "base", true));
    CHECK_EQ(rank("blue", "acme/base", "red", "acme/base", true), 0);
}

TEST(a_name_is_shown_as_it_is_reached)
{
    char out[32];
    CHECK_OK(reach_name("blue", "blue", "base", out, sizeof(out)));
    CHECK_STR(out, "base");
    CHECK_OK(reach_name("blue", OWNER_DEFAULT, "base", out, sizeof(out)));
    CHECK_STR(out, "base");
    CHECK_OK(reach_name("blue", "acme", "base", out, sizeof(out)));
    CHECK_STR(out, "acme/base");
    CHECK_EQ(reach_name("blue", "acme", "base", out, 9), -EMSGSIZE);
}
