#include "broker/origin.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

#define ID "a0000000000000000000"
#define OTHER "b0000000000000000000"

static struct head head;

static bool strange(const char *host, const char *origin)
{
    char request[512];
    (void)snprintf(request, sizeof(request), "GET / HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n", host,
                   origin ? "Origin: " : "", origin ? origin : "", origin ? "\r\n" : "");
    CHECK_OK(head_request(request, strlen(request), &head));
    return origin_is_strange(&head, "preview.test", ID);
}

TEST(pages_of_the_same_name_or_sandbox_are_at_home)
{
    static const char here[] = "3000-" ID ".preview.test";
    CHECK(!strange(here, NULL));
    CHECK(!strange(here, "https://3000-" ID ".preview.test"));
    CHECK(!strange("3000-" ID ".preview.test:7070", "http://3000-" ID ".PREVIEW.test:8080"));
    CHECK(!strange(here, "http://8000-" ID ".preview.test"));
    CHECK(!strange("shop.example", "https://shop.example"));
}

TEST(pages_of_others_are_strange)
{
    static const char here[] = "3000-" ID ".preview.test";
    CHECK(strange(here, "https://3000-" OTHER ".preview.test"));
    CHECK(strange(here, "https://preview.test"));
    CHECK(strange(here, "https://evil.test"));
    CHECK(strange(here, "https://3000-" ID ".preview.test.evil.test"));
    CHECK(strange(here, "https://3000-" ID ".preview.tes"));
    CHECK(strange(here, "null"));
    CHECK(strange(here, "3000-" ID ".preview.test"));
    CHECK(strange(here, "https://"));
    CHECK(strange("shop.example", "https://shop.example.evil.test"));
}
