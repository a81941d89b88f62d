#include "broker/rewrite.h"

#include <string.h>

#include "base/check.h"
#include "broker/way.h"

#define ID "abcdefghij0123456789"
#define KEY "e2b_0123456789abcdef0123456789abcdef01234567"

static struct head head;
static bool near;

/* The request as it is sent on. */
static char *sent_on(const char *request, const char *mask, struct way *way)
{
    static char text[8192];
    struct buf out = BUF_INIT(sizeof(text) - 1);
    struct rewrite how = { .peer = "192.0.2.1", .host = mask, .near = near };
    CHECK_OK(head_request(request, strlen(request), &head));
    static const struct own_names none;
    const struct way_map map = { "localhost", &none, false };
    CHECK_OK(way_find(&head, &map, way));
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
                 "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\n"
                 "X-Forwarded-Host: 80-" ID ".localhost\r\n\r\n");
    near = true; /* a proxy on this machine says whom it speaks for */
    s = sent_on("GET /a HTTP/1.1\r\nHost: 80-" ID ".localhost\r\nX-Forwarded-For: 1.1.1.1\r\n\r\n",
                "", &way);
    CHECK(strstr(s, "\r\nX-Forwarded-For: 1.1.1.1, 192.0.2.1\r\n"));
    near = false;
}

TEST(rewrite_keeps_the_length_whatever_connection_names)
{
    struct way way;
    const char *s = sent_on("POST / HTTP/1.1\r\nHost: 80-" ID ".localhost\r\nContent-Length: 3\r\n"
                            "Connection: content-length\r\n\r\n",
                            "mask:80", &way);
    CHECK(strstr(s, "\r\nContent-Length: 3\r\n"));
    CHECK(strstr(s, "\r\nConnection: close\r\n\r\n")); /* nothing follows a body */
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

TEST(rewrite_passes_no_upgrade_to_more_http)
{
    static const char *const to[] = { "h2c", "H2C", "websocket, h2c", "HTTP/2.0",
                                      "TLS/1.2, HTTP/1.1" };
    for (size_t i = 0; i < ARRAY_LEN(to); i++) {
        struct way way;
        char request[256];
        (void)snprintf(request, sizeof(request),
                       "GET / HTTP/1.1\r\nHost: 80-" ID ".localhost\r\nHTTP2-Settings: AAMAAABk\r\n"
                       "Connection: Upgrade\r\nUpgrade: %s\r\n\r\n",
                       to[i]);
        const char *s = sent_on(request, "", &way);
        CHECK(!strstr(s, "Upgrade"));
        CHECK(!rewrite_upgrades(&head));
    }
}

TEST(rewrite_lets_no_spelling_of_what_only_we_may_say_pass)
{
    struct way way;
    const char *s =
        sent_on("GET / HTTP/1.1\r\nHost: 80-" ID ".localhost\r\nX_Verified_User_Data: a\r\n"
                "x-verified_user.data: b\r\nX_Forwarded_For: 1.1.1.1\r\nX_Other: c\r\n"
                "X-Verified-User-Data-Too: d\r\nX-Verified-User: e\r\n\r\n",
                "", &way);
    CHECK(!strstr(s, ": a\r\n") && !strstr(s, ": b\r\n") && !strstr(s, "1.1.1.1"));
    CHECK(strstr(s, ": c\r\n") && strstr(s, ": d\r\n") && strstr(s, ": e\r\n"));
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
    CHECK_OK(rewrite_answer(&head, true, false, &out));
    CHECK_STR(out.data,
              "HTTP/1.1 200 Fine\r\nA: b\r\nTransfer-Encodin: x\r\nConnection: close\r\n\r\n");
    buf_done(&out);
}

TEST(rewrite_gives_no_length_to_what_has_no_body)
{
    static const struct {
        const char *answer;
        bool kept;
    } cases[] = {
        { "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", false },
        { "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n", false },
        { "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", true },
        { "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out = BUF_INIT(4096);
        CHECK_OK(head_answer(cases[i].answer, strlen(cases[i].answer), true, &head));
        CHECK_OK(rewrite_answer(&head, true, true, &out));
        CHECK_EQ(strstr(out.data, "Content-Length") != NULL, cases[i].kept);
        buf_done(&out);
    }
}

TEST(rewrite_leaves_no_token_in_a_request_and_no_cookie_beyond_its_host)
{
    struct way way;
    struct buf out = BUF_INIT(4096);
    const char *s = sent_on("GET /a?warren_token=t&b=1 HTTP/1.1\r\nHost: 80-" ID ".localhost\r\n"
                            "Cookie: warren_preview=t; a=1\r\nCookie: warren_preview=t\r\n"
                            "Referer: http://x/?warren_token=t\r\nX-Verified-User-Data: {}\r\n\r\n",
                            "", &way);
    CHECK(strncmp(s, "GET /a?b=1 HTTP/1.1\r\n", 21) == 0);
    CHECK(strstr(s, "\r\nCookie: a=1\r\nReferer: http://x/\r\n"));
    CHECK(!strstr(s, "warren_") && !strstr(s, "X-Verified"));
    static const char answer[] = "HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Domain=localhost; Path=/\r\n"
                                 "Set-Cookie: warren_preview=x\r\nContent-Length: 0\r\n\r\n";
    CHECK_OK(head_answer(answer, sizeof(answer) - 1, false, &head));
    CHECK_OK(rewrite_answer(&head, true, true, &out));
    CHECK_STR(out.data, "HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/\r\nContent-Length: 0\r\n\r\n");
    buf_done(&out);
}
