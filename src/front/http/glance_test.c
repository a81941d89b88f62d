#include "front/http/glance.h"

#include <string.h>

#include "base/check.h"

#define ID "abcdefghij0123456789"

static bool preview(const char *head)
{
    struct glance g;
    glance(head, strlen(head), "localhost", &g);
    return g.preview;
}

TEST(glance_tells_previews_from_the_api)
{
    CHECK(preview("GET / HTTP/1.1\r\nHost: 80-" ID ".localhost\r\n\r\n"));
    CHECK(preview("GET / HTTP/1.1\r\nA: b\r\nhost:80-" ID ".localhost:7070\r\n"));
    CHECK(preview("GET / HTTP/1.1\nHost: 80-" ID ".localhost"));
    CHECK(
        preview("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nE2b-Sandbox-Port: 80\r\n\r\n"));
    CHECK(!preview("GET / HTTP/1.1\r\nHost: a\r\nE2b-Sandbox-Port: 80\r\n\r\n"));
    CHECK(preview("GET / HTTP/1.1\r\nHost: api.localhost:7070\r\n\r\n"));
    CHECK(preview("GET / HTTP/1.1\r\nHost: nobody.localhost:7070\r\n\r\n")); /* told so */
    CHECK(!preview("GET / HTTP/1.1\r\nHost: localhost:7070\r\n\r\n"));
    CHECK(!preview("GET / HTTP/1.1\r\nHost: notlocalhost\r\n\r\n"));
    CHECK(!preview("GET /80-" ID ".localhost HTTP/1.1\r\nX-Host: 80-" ID ".localhost\r\n\r\n"));
    CHECK(!preview("GET / HTTP/1.1\r\nHost:\r\n\r\n"));
    CHECK(!preview("GET / HTTP/1.1\r\nHost"));
    CHECK(!preview(""));
}
