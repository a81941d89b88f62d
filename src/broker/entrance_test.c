#include "broker/entrance.h"

#include <string.h>

#include "base/check.h"

static struct head head;

static const char *written(const char *target, bool tls)
{
    static char request[512], out[1024];
    struct buf b = BUF_INIT(sizeof(out) - 1);
    (void)snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", target);
    CHECK_OK(head_request(request, strlen(request), &head));
    CHECK_OK(entrance_write(&head, "tok", 60, tls, true, &b));
    memcpy(out, b.data, b.len + 1);
    buf_done(&b);
    return out;
}

TEST(entrance_leads_on_without_the_token)
{
    const char *s = written("/a/b?x=1&warren_token=tok&y=2", false);
    CHECK(strncmp(s, "HTTP/1.1 303 ", 13) == 0);
    CHECK(strstr(s, "\r\nLocation: /a/b?x=1&y=2\r\n"));
    CHECK(strstr(s, "\r\nSet-Cookie: warren_preview=tok; Path=/; Max-Age=60; HttpOnly; "
                    "SameSite=Lax\r\n"));
    s = written("/?warren_token=tok", true);
    CHECK(strstr(s, "\r\nLocation: /\r\n"));
    CHECK(strstr(s, "\r\nSet-Cookie: __Host-warren_preview=tok; "));
    CHECK(strstr(s, "; SameSite=Lax; Secure\r\n"));
}

TEST(entrance_never_leads_to_another_host)
{
    CHECK(strstr(written("//evil.test/?warren_token=tok", false),
                 "\r\nLocation: /.//evil.test/\r\n"));
    CHECK(strstr(written("/\\evil.test/?warren_token=tok", false),
                 "\r\nLocation: /./\\evil.test/\r\n"));
}
