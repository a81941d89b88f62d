#include "broker/rewrite.h"

#include <string.h>

#include "base/check.h"
#include "broker/way.h"

#define ID "abcdefghij0123456789"
#define KEY "e2b_0123456789abcdef0123456789abcdef01234567"

static struct head head;

/* The request as it is sent on. */
static char *sent_on(const char *request, const char *mask, struct way *way)
{
    static char text[8192];
    struct buf out = BUF_INIT(sizeof(text) - 1);
    struct rewrite how = { .peer = "192.0.2.1", .host = mask };
    CHECK_OK(head_request(request, strlen(request), &head));
    CHECK_OK(way_find(&head, "localhost", way));
    way_rewrite(way, &how);
    CHECK_OK(rewrite_request(&head, &how, &out));
    memcpy(text, out.data, out.len + 1);
    buf_done(&out);
    return text;
}

TEST(rewrite_says_what_only_we_may_say)
{
    struct way way;
    const char *s =
        sent_on("GET /a HTTP/1.1\r\nHost: 80-" ID ".localhost\r\nX-Forwarded-For: 1.1.1.1\r\n"
                "X-Forwarded-Proto: https\r\nConnection: x-a\r\nX-A: b\r\nX-API-Key: " KEY
                "\r\nAuthorization: Bearer " KEY "\r\nX-Warren-Team: t\r\nX-B: c\r\n\r\n",
                "", &way);
    CHECK(way.inside);
    CHECK_STR(way.sandbox, ID);
    CHECK_STR(s, "GET /a HTTP/1.1\r\nHost: 80-" ID ".localhost\r\nX-B: c\r\n"
                 "X-Forwarded-For: 1.1.1.1, 192.0.2.1\r\nX-Forwarded-Proto: http\r\n"
                 "X-Forwarded-Host: 80-" ID ".localhost\r\n\r\n");
}

TEST(rewrite_keeps_the_length_whatever_connection_names)
{
    struct way way;
    const char *s = sent_on("POST / HTTP/1.1\r\nHost: 80-" ID ".localhost\r\nContent-Length: 3\r\n"
                            "Connection: content-length\r\n\r\n",
                            "mask:80", &way);
    CHECK(strstr(s, "\r\nContent-Length: 3\r\n"));
    CHECK(strstr(s, "\r\nHost: mask:80\r\n"));
}

TEST(rewrite_passes_an_upgrade_on)
{
    struct way way;
    const char *s = sent_on("GET /e2b/ws HTTP/1.1\r\nHost: a\r\nE2b-Sandbox-Id: " ID
                            "\r\nE2b-Sandbox-Port: 80\r\nConnection: keep-alive, Upgrade\r\n"
                            "Upgrade: websocket\r\n\r\n",
                            "", &way);
    CHECK(way.inside && way.port == 80);
    CHECK(strncmp(s, "GET /ws HTTP/1.1\r\n", 18) == 0);
    CHECK(strstr(s, "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
    CHECK(!strstr(s, "E2b-Sandbox"));
}

TEST(rewrite_names_the_sandbox_to_warrend_itself)
{
    struct way way;
    const char *s =
        sent_on("GET /health HTTP/1.1\r\nHost: 49983-" ID ".localhost\r\n"
                "E2b-Sandbox-Id: zzzzzzzzzzzzzzzzzzzz\r\nAuthorization: Bearer " KEY "\r\n\r\n",
                "", &way);
    CHECK(!way.inside);
    CHECK(strncmp(s, "GET /e2b/health HTTP/1.1\r\n", 26) == 0);
    CHECK(strstr(s, "\r\nE2b-Sandbox-Id: " ID "\r\nE2b-Sandbox-Port: 49983\r\n"));
    CHECK(!strstr(s, "zzzz"));
    CHECK(strstr(s, KEY)); /* its own credentials it gets */
    s = sent_on("GET /sandboxes HTTP/1.1\r\nHost: api.localhost\r\n\r\n", "", &way);
    CHECK(strncmp(s, "GET /e2b/sandboxes HTTP/1.1\r\n", 29) == 0);
    s = sent_on("GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n", "", &way);
    CHECK(strncmp(s, "GET /v1/health HTTP/1.1\r\n", 25) == 0);
}

TEST(rewrite_writes_answers_anew)
{
    struct buf out = BUF_INIT(4096);
    const char *s = "HTTP/1.0 200 Fine\nA: b\nConnection: close\nTransfer-Encodin: x\n\n";
    CHECK_OK(head_answer(s, strlen(s), false, &head));
    CHECK_OK(rewrite_answer(&head, false, &out));
    CHECK_STR(out.data,
              "HTTP/1.1 200 Fine\r\nA: b\r\nTransfer-Encodin: x\r\nConnection: close\r\n\r\n");
    buf_done(&out);
}
