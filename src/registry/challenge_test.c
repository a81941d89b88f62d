#include "registry/challenge.h"

#include "base/check.h"

static struct challenge parse(const char *text)
{
    struct challenge ch;
    challenge_parse(text, strlen(text), &ch);
    return ch;
}

TEST(a_bearer_challenge_is_read)
{
    struct challenge ch = parse("Bearer realm=\"https://auth.test/token?a=b\",service=\"reg\", "
                                "scope=\"repository:a/b:pull,push\"");
    CHECK_EQ(ch.scheme, CHALLENGE_BEARER);
    CHECK_STR(ch.realm, "https://auth.test/token?a=b");
    CHECK_STR(ch.service, "reg");
    CHECK_STR(ch.scope, "repository:a/b:pull,push");
}

TEST(quotes_spaces_and_case_do_not_matter)
{
    struct challenge ch = parse("bearer Realm = \"a\\\"b\" , error=x , service=plain");
    CHECK_EQ(ch.scheme, CHALLENGE_BEARER);
    CHECK_STR(ch.realm, "a\"b");
    CHECK_STR(ch.service, "plain");
    CHECK_STR(ch.scope, "");
}

TEST(bearer_wins_over_basic_wherever_it_stands)
{
    CHECK_EQ(parse("Basic realm=\"x\", Bearer realm=\"y\"").scheme, CHALLENGE_BEARER);
    CHECK_EQ(parse("Bearer realm=\"y\", Basic realm=\"x\"").scheme, CHALLENGE_BEARER);
    CHECK_EQ(parse("Negotiate, Basic realm=\"x\"").scheme, CHALLENGE_BASIC);
    CHECK_EQ(parse("Basic").scheme, CHALLENGE_BASIC);
}

TEST(what_cannot_be_used_is_none)
{
    CHECK_EQ(parse("").scheme, CHALLENGE_NONE);
    CHECK_EQ(parse("Negotiate").scheme, CHALLENGE_NONE);
    CHECK_EQ(parse("Bearer").scheme, CHALLENGE_NONE);
    CHECK_EQ(parse("Bearer realm=\"unfinished").scheme, CHALLENGE_NONE);
    CHECK_EQ(parse("Bearer realm=\"a\nb\"").scheme, CHALLENGE_NONE);
    char big[CHALLENGE_TEXT_MAX + 64];
    int n = snprintf(big, sizeof(big), "Bearer realm=\"%0*d\"", CHALLENGE_TEXT_MAX, 1);
    CHECK(n > CHALLENGE_TEXT_MAX);
    CHECK_EQ(parse(big).scheme, CHALLENGE_NONE);
}
