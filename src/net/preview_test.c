#include "net/preview.h"

#include <string.h>

#include "base/check.h"
#include "base/cleanup.h"

#define ID "abcdefghij0123456789"

static bool reads(const char *host, const char *domain)
{
    char id[ID_SIZE];
    unsigned port = 0;
    bool yes = preview_host(host, strlen(host), domain, id, &port);
    if (yes) {
        CHECK_STR(id, ID);
        CHECK_EQ(port, 3000);
    }
    return yes;
}

TEST(preview_host_is_port_id_and_domain)
{
    CHECK(reads("3000-" ID ".localhost", "localhost"));
    CHECK(reads("3000-" ID ".localhost:7070", "localhost"));
    CHECK(reads("3000-ABCDEFGHIJ0123456789.LocalHost.", "localhost"));
    CHECK(reads("3000-" ID ".sbx.example.test", "sbx.example.test"));
    CHECK(!reads("3000-" ID ".example.test", "localhost"));
    CHECK(!reads("3000-" ID "xlocalhost", "localhost"));
    CHECK(!reads("3000-" ID ".evil.localhost", "localhost"));
    CHECK(!reads("3000-" ID "", "localhost"));
    CHECK(!reads("03000-" ID ".localhost", "localhost"));
    CHECK(!reads("-" ID ".localhost", "localhost"));
    CHECK(!reads("70000-" ID ".localhost", "localhost"));
    CHECK(!reads("3000-0bcdefghij0123456789.localhost", "localhost"));
    CHECK(!reads("3000-abcdefghij012345678.localhost", "localhost"));
    CHECK(!reads("localhost:7070", "localhost"));
    CHECK(!reads("", "localhost"));
}

TEST(nothing_but_a_port_follows_the_name)
{
    static const char *const good[] = { "",           "a",        "a:1",       "a:65535",
                                        "A.test.:80", "[::1]:80", "[fd77::2]", "127.0.0.1:9" };
    static const char *const bad[] = { "a:",         "a:0",      "a:080",     "a:65536",
                                       "a:9999junk", "a:80:80",  "a: 80",     "a:80 ",
                                       "a:+80",      "a:80/x",   "a:80@b",    "[::1",
                                       "[::1]x:80",  "[::1]:8a", "a:80,b:80", "a:80.evil" };
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CHECK(preview_host_plain(good[i], strlen(good[i])));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!preview_host_plain(bad[i], strlen(bad[i])));
    CHECK(!reads("3000-" ID ".localhost:9999junk", "localhost"));
    CHECK(!reads("3000-" ID ".localhost:", "localhost"));
}

TEST(preview_is_api_knows_one_name)
{
    CHECK(preview_is_api("api.a.test:80", 13, "a.test"));
    CHECK(preview_is_api("API.A.test", 10, "a.test"));
    CHECK(!preview_is_api("xapi.a.test", 11, "a.test"));
    CHECK(!preview_is_api("api.b.test", 10, "a.test"));
    CHECK(!preview_is_api("api.", 4, "a.test"));
}

TEST(what_only_we_say_is_known_in_every_spelling)
{
    static const char *const ours[] = { "X-Verified-User-Data", "x_verified_user_data",
                                        "X.Verified-User_Data", "X_Forwarded_For", "FORWARDED" };
    static const char *const others[] = { "X-Verified-User", "X-Verified-User-Data-", "Verified",
                                          "" };
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        CHECK(preview_own_field(ours[i], strlen(ours[i])));
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        CHECK(!preview_own_field(others[i], strlen(others[i])));
}
