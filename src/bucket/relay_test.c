#include "bucket/relay.h"

#include "base/check.h"

TEST(only_the_bucket_s_host_is_reached)
{
    struct bucket_config c = { .port = 443, .host = "s3.example", .bucket = "mine" };
    CHECK(relay_may_ask(&c, "s3.example", 443));
    CHECK(relay_may_ask(&c, "MINE.s3.Example", 443));
    CHECK(!relay_may_ask(&c, "s3.example", 80));
    CHECK(!relay_may_ask(&c, "other.s3.example", 443));
    CHECK(!relay_may_ask(&c, "169.254.169.254", 443));
    CHECK(!relay_may_ask(&c, "", 443));
    c.path_style = 1;
    CHECK(!relay_may_ask(&c, "mine.s3.example", 443));
}
