#include "base/failure.h"

#include <string.h>

#include "base/check.h"

TEST(each_failure_has_a_name_of_its_own)
{
    for (enum failure f = FAIL_NONE; f < FAILURES_END; f++) {
        CHECK(strspn(failure_name(f), "abcdefghijklmnopqrstuvwxyz_") == strlen(failure_name(f)));
        for (enum failure g = FAIL_NONE; g < f; g++)
            CHECK(strcmp(failure_name(f), failure_name(g)) != 0);
    }
}

TEST(each_failure_is_one_for_every_dialect)
{
    for (enum failure f = FAIL_NONE; f < FAILURES_END; f++) {
        CHECK(failure_errno(f) > 0);
        CHECK(failure_status(f) >= 400 && failure_status(f) < 600);
        CHECK(failure_rpc(f) > RPC_OK && failure_rpc(f) <= RPC_UNAUTHENTICATED);
    }
}

static enum failure find(const char *name, enum failure_teller teller)
{
    return failure_find(name, strlen(name), teller);
}

TEST(a_teller_is_believed_in_what_it_can_know)
{
    CHECK_EQ(find("file_not_found", FAILURE_BY_INIT), FAIL_FILE_NOT_FOUND);
    CHECK_EQ(find("file_not_found", FAILURE_BY_KEEPER), FAIL_NONE);
    CHECK_EQ(find("layer_too_large", FAILURE_BY_KEEPER), FAIL_LAYER_TOO_LARGE);
    CHECK_EQ(find("no_space", FAILURE_BY_INIT), FAIL_NO_SPACE);
    CHECK_EQ(find("unauthorized", FAILURE_BY_INIT), FAIL_NONE);
    CHECK_EQ(find("quota_exceeded", FAILURE_BY_KEEPER), FAIL_NONE);
    CHECK_EQ(find("internal", FAILURE_BY_INIT), FAIL_NONE);
    CHECK_EQ(failure_find("file_not_found and more", 14, FAILURE_BY_INIT), FAIL_FILE_NOT_FOUND);
    CHECK_EQ(find("file_not_foun", FAILURE_BY_INIT), FAIL_NONE);
    CHECK_EQ(find("", FAILURE_BY_INIT), FAIL_NONE);
}

TEST(a_number_that_no_failure_has_is_none)
{
    CHECK_EQ(failure_numbered(FAIL_NO_SPACE), FAIL_NO_SPACE);
    CHECK_EQ(failure_numbered(FAILURES_END), FAIL_NONE);
    CHECK_EQ(failure_numbered(-1), FAIL_NONE);
    CHECK_EQ(failure_numbered(1 << 30), FAIL_NONE);
}
