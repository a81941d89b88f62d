#include "front/http/cors.h"

#include <errno.h>

#include "base/check.h"

TEST(only_listed_origins_are_allowed)
{
    const char *list = "https://a.example, http://localhost:3000";
    CHECK_STR(cors_allows("*", "https://x.example"), "*");
    CHECK(!cors_allows("*", NULL));
    CHECK(!cors_allows("none", "https://x.example"));
    CHECK_STR(cors_allows(list, "https://a.example"), "https://a.example");
    CHECK_STR(cors_allows(list, "http://localhost:3000"), "http://localhost:3000");
    CHECK(!cors_allows(list, "https://a.example.evil"));
    CHECK(!cors_allows(list, "https://a.exampl"));
    CHECK(!cors_allows(list, ""));
    CHECK(!cors_allows(list, "null"));
}

TEST(what_is_no_list_of_origins_is_refused)
{
    static const char *const bad[] = { "",           " , ",         "a.example", "https://",
                                       "https://a/", "*,https://a", "://x" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_EQ(cors_check(bad[i], NULL), -EINVAL);
    CHECK_OK(cors_check("*", NULL));
    CHECK_OK(cors_check("none", NULL));
    CHECK_OK(cors_check("https://a.example,http://[::1]:80", NULL));
}
