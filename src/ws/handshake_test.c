#include "ws/handshake.h"

#include <string.h>

#include "base/check.h"

TEST(the_answer_is_the_rfcs)
{
    char accept[HANDSHAKE_ACCEPT_SIZE];
    CHECK_OK(handshake_accept("dGhlIHNhbXBsZSBub25jZQ==", accept));
    CHECK_STR(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(a_key_is_sixteen_bytes)
{
    char key[HANDSHAKE_KEY_SIZE], other[HANDSHAKE_KEY_SIZE];
    CHECK_OK(handshake_key(key));
    CHECK_OK(handshake_key(other));
    CHECK(handshake_key_valid(key));
    CHECK(strcmp(key, other) != 0);
    CHECK(!handshake_key_valid(""));
    CHECK(!handshake_key_valid("dGhlIHNhbXBsZSBub25j"));
    CHECK(!handshake_key_valid("dGhlIHNhbXBsZSBub25jZQ=\n"));
    CHECK(!handshake_key_valid("dGhlIHNhbXBsZSBub25jZXh4"));
}
