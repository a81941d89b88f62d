#include "core/digest.h"

#include "base/check.h"

TEST(a_digest_has_one_shape)
{
    char d[DIGEST_SIZE];
    CHECK_OK(digest_of("abc", 3, d));
    CHECK_STR(d, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(digest_valid(d));
    CHECK(!digest_valid(NULL));
    CHECK(!digest_valid("sha256:../../etc/passwd"));
    d[10] = 'A';
    CHECK(!digest_valid(d));
    CHECK(!digest_valid("sha512:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
}

TEST(a_chain_of_one_is_its_layer_and_order_matters)
{
    static const char *const a =
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    static const char *const b =
        "sha256:cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed";
    char one[DIGEST_SIZE], ab[DIGEST_SIZE], ba[DIGEST_SIZE];
    CHECK_OK(digest_chain("", a, one));
    CHECK_STR(one, a);
    CHECK_OK(digest_chain(a, b, ab));
    CHECK_OK(digest_chain(b, a, ba));
    CHECK(strcmp(ab, ba) != 0);
    CHECK(digest_valid(ab));
}
