#include "s3/s3.h"

#include <errno.h>

#include "base/check.h"
#include "s3/private.h"

static const struct s3_config good = { .endpoint = "https://storage.test",
                                       .region = "eu-1",
                                       .bucket = "boxes",
                                       .prefix = "a/b",
                                       .key_id = "K",
                                       .secret = "S" };

static int try_config(struct s3_config c)
{
    struct s3 *s3 = NULL;
    int r = s3_new(&c, &s3, NULL);
    s3_free(s3);
    return r;
}

TEST(a_configuration_is_checked_before_anything_is_sent)
{
    struct s3_config c = good;
    CHECK_OK(try_config(c));
    c.endpoint = "http://127.0.0.1:9000";
    CHECK_OK(try_config(c));
    static const char *const endpoints[] = { "http://storage.test",
                                             "ftp://x",
                                             "https://",
                                             "https://u@storage.test",
                                             "storage.test",
                                             "https://storage.test/x",
                                             "http://127.evil.test",
                                             "http://localhost.test" };
    for (size_t i = 0; i < ARRAY_LEN(endpoints); i++) {
        c.endpoint = endpoints[i];
        CHECK_EQ(try_config(c), -EINVAL);
    }
    c = good;
    c.bucket = "a/b";
    CHECK_EQ(try_config(c), -EINVAL);
    c = good;
    c.prefix = "../x";
    CHECK_EQ(try_config(c), -EINVAL);
    c = good;
    c.secret = "";
    CHECK_EQ(try_config(c), -EINVAL);
    c = good;
    c.token = "a\r\nHost: x";
    CHECK_EQ(try_config(c), -EINVAL);
}

TEST(keys_have_no_character_that_needs_quoting)
{
    CHECK(s3_key_valid("chunks/ab/cd.ef-0_1"));
    static const char *const bad[] = {
        "", "/a", "a//b", "a/../b", "a b", "a?b", "a%2e", "\xc3\xa9"
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!s3_key_valid(bad[i]));
}
