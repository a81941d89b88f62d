#include "front/http/auth.h"

#include <netinet/in.h>

#include "base/check.h"

TEST(a_key_is_found_in_either_header)
{
    CHECK_STR(auth_key_text("Bearer abc", NULL), "abc");
    CHECK_STR(auth_key_text("bearer  abc", "x"), "abc");
    CHECK_STR(auth_key_text(NULL, "x"), "x");
    CHECK_STR(auth_key_text("Basic zzz", "x"), "x");
    CHECK(auth_key_text("Basic zzz", NULL) == NULL);
    CHECK(auth_key_text(NULL, NULL) == NULL);
}

TEST(wrong_keys_are_slowed_down_per_address_and_forgiven_later)
{
    _cleanup_(auth_freep) struct auth *a = NULL;
    struct sockaddr_in one = { .sin_family = AF_INET }, two = { .sin_family = AF_INET };

    one.sin_addr.s_addr = htonl(0x7f000001);
    two.sin_addr.s_addr = htonl(0x7f000002);
    CHECK_OK(auth_new(&a, NULL));
    for (int i = 0; i < AUTH_FAILURES_MAX; i++)
        CHECK(!auth_failed(a, (struct sockaddr *)&one, 1000));
    CHECK(auth_failed(a, (struct sockaddr *)&one, 1001));
    CHECK(!auth_failed(a, (struct sockaddr *)&two, 1001));
    CHECK(!auth_failed(a, NULL, 1001));
    CHECK(!auth_failed(a, (struct sockaddr *)&one, 1001 + AUTH_WINDOW_S * 1000));
}
