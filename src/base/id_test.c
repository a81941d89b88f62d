#include "base/id.h"

#include "base/check.h"

TEST(a_random_id_has_the_shape_of_an_id)
{
    char id[ID_SIZE];

    for (int i = 0; i < 1000; i++) {
        CHECK_OK(id_random(id));
        CHECK(id_valid(id));
    }
}

TEST(ids_of_another_shape_are_refused)
{
    CHECK(!id_valid(""));
    CHECK(!id_valid("abc"));
    CHECK(!id_valid("1bcdefghijklmnopqrst"));
    CHECK(!id_valid("abcdefghijklmnopqrs/"));
    CHECK(!id_valid("abcdefghijklmnopqrstu"));
}

TEST(names_are_labels)
{
    CHECK(name_valid("my-box_1.dev"));
    CHECK(!name_valid("-x"));
    CHECK(!name_valid("a b"));
    CHECK(!name_valid("../x"));
    CHECK(!name_valid(""));
}
