#include "wire/bucket.h"

#include "base/check.h"
#include "base/cleanup.h"

TEST(what_could_end_a_word_of_s3fs_is_refused)
{
    static const char *const names[] = { "ab", "a,b", "a b", "-ab", "a:b", "a/b", "", ".ab" };
    static const char *const prefixes[] = { "/a", "a/",     "a//b", "..",   "a/../b",
                                            ".",  "a,ro=1", "a b",  "a\\b", "a\n" };
    static const char *const keys[] = { "", "a:b", "a b", "a\nb", "a\tb", "a\"" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        CHECK(!bucket_name_valid(names[i]));
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        CHECK(!bucket_prefix_valid(prefixes[i]));
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        CHECK(!bucket_key_valid(keys[i]));
    CHECK(bucket_name_valid("my.bucket-1") && bucket_prefix_valid("") && bucket_prefix_valid("a"));
    CHECK(bucket_prefix_valid("a/b.c/..d") && bucket_key_valid("a/secret+of=it"));
}

TEST(a_configuration_is_checked_as_a_whole)
{
    struct bucket_config c = { .version = BUCKET_VERSION,
                               .port = 443,
                               .host = "s3.example",
                               .bucket = "bucket",
                               .region = "here-1",
                               .access_key = "KEY",
                               .secret = "secret" };
    CHECK(bucket_config_valid(&c));
    struct bucket_config bad = c;
    memset(bad.secret, 'x', sizeof(bad.secret));
    CHECK(!bucket_config_valid(&bad)); /* it does not end */
    bad = c;
    bad.port = 0;
    CHECK(!bucket_config_valid(&bad));
    bad = c;
    bad.version++;
    CHECK(!bucket_config_valid(&bad));
    bad = c;
    memcpy(bad.host, "a b", 4);
    CHECK(!bucket_config_valid(&bad));
}
