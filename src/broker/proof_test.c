#include "broker/proof.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

#define KEY "warren_0123456789abcdef0123456789abcdef01234567"

static struct head head;

static struct broker_proof found(const char *request, enum proof_cookies cookies, bool *ret_query)
{
    struct broker_proof p;
    CHECK_OK(head_request(request, strlen(request), &head));
    CHECK_OK(proof_find(&head, cookies, &p, ret_query));
    return p;
}

static const char *cut(const char *url)
{
    static char out[256];
    struct buf b = BUF_INIT(sizeof(out) - 1);
    CHECK_OK(proof_cut((struct text){ url, strlen(url) }, &b));
    (void)snprintf(out, sizeof(out), "%.*s", (int)b.len, b.len ? b.data : "");
    buf_done(&b);
    return out;
}

TEST(proof_is_found_wherever_it_may_be)
{
    bool query;
    struct broker_proof p =
        found("GET /?a=1&warren_token=t1&b HTTP/1.1\r\nHost: a\r\nCookie: warren_preview=c1\r\n"
              "Authorization: Bearer " KEY "\r\n\r\n",
              PROOF_COOKIE, &query);
    CHECK_STR(p.token, "t1");
    CHECK_STR(p.key, KEY);
    CHECK(query);
    p = found("GET / HTTP/1.1\r\nHost: a\r\nCookie: a=b\r\nCookie: c=d; warren_preview=c1\r\n\r\n",
              PROOF_COOKIE, &query);
    CHECK_STR(p.token, "c1");
    CHECK(!query);
    p = found("GET /?warren_token=t HTTP/1.1\r\nHost: a\r\nX-Warren-Preview-Token: h1\r\n\r\n",
              PROOF_COOKIE, &query);
    CHECK_STR(p.token, "h1");
    CHECK(!query);
    /* Under TLS it is the one that no neighbour can set. */
    p = found(
        "GET / HTTP/1.1\r\nHost: a\r\nCookie: warren_preview=x; __Host-warren_preview=y\r\n\r\n",
        PROOF_COOKIE_TLS, &query);
    CHECK_STR(p.token, "y");
    p = found("GET / HTTP/1.1\r\nHost: a\r\nCookie: warren_preview=c1\r\nX-API-Key: " KEY
              "\r\n\r\n",
              PROOF_NO_COOKIE, &query);
    CHECK_STR(p.token, "");
    CHECK_STR(p.key, KEY);
}

TEST(proof_of_an_applications_own_is_left_alone)
{
    bool query;
    struct broker_proof p =
        found("GET /?token=1&xwarren_token=2&warren_tokens=3 HTTP/1.1\r\nHost: a\r\n"
              "X-API-Key: sk-abc\r\nAuthorization: Bearer eyJhbGciOi\r\n\r\n",
              PROOF_COOKIE, &query);
    CHECK_STR(p.token, "");
    CHECK_STR(p.key, "");
}

TEST(proof_that_is_too_long_is_refused)
{
    char request[1024];
    struct broker_proof p;
    bool query;
    (void)snprintf(request, sizeof(request),
                   "GET / HTTP/1.1\r\nHost: a\r\nX-Warren-Preview-Token: %0*d\r\n\r\n",
                   BROKER_TOKEN_SIZE, 1);
    CHECK_OK(head_request(request, strlen(request), &head));
    CHECK_EQ(proof_find(&head, PROOF_COOKIE, &p, &query), -EINVAL);
}

TEST(proof_is_cut_out_of_urls)
{
    CHECK_STR(cut("/a?warren_token=x"), "/a");
    CHECK_STR(cut("/a?b=1&warren_token=x&c=2"), "/a?b=1&c=2");
    CHECK_STR(cut("/a?warren_token=x&c=2&warren_token=y&warren_token"), "/a?c=2");
    CHECK_STR(cut("/a?b=1"), "/a?b=1");
    CHECK_STR(cut("/a?b=1&&c"), "/a?b=1&&c");
    CHECK_STR(cut("/a"), "/a");
    CHECK_STR(cut("http://h/a?warren_token=x&b=2#f"), "http://h/a?b=2#f");
    CHECK_STR(cut("/a?xwarren_token=x&warren_tokens=1"), "/a?xwarren_token=x&warren_tokens=1");
    CHECK_STR(cut(""), "");
    CHECK(proof_in_url((struct text){ "/?a&warren_token", 16 }));
    CHECK(!proof_in_url((struct text){ "/warren_token", 13 }));
}
