#include "broker/credential.h"

#include <errno.h>

#include "base/check.h"

struct story {
    struct bindings bindings;
    const struct binding *fits[BINDINGS_MAX];
    struct head head;
    struct credential c;
};

/* The request's head, and bindings as lines; each gets the value. */
static void tell(struct story *s, const char *request, const char *lines, const char *value)
{
    struct err err = ERR_INIT;
    *s = (struct story){ .bindings = BINDINGS_INIT };
    CHECK_OK(head_request(request, strlen(request), &s->head));
    CHECK_OK(bindings_parse(lines, strlen(lines), &s->bindings, &err));
    for (size_t i = 0; i < s->bindings.n; i++) {
        struct binding *b = &s->bindings.items[i];
        const char *is = b->literal ? b->literal : value;
        free(b->value);
        b->value = is ? strdup(is) : NULL;
        b->n_value = is ? strlen(is) : 0;
        s->fits[i] = b;
    }
    s->c = (struct credential){ .head = &s->head,
                                .fits = s->fits,
                                .n_fits = s->bindings.n,
                                .host = "api.test",
                                .port = 443,
                                .hides = true,
                                .unix_s = 1440938160 };
}

static void check(const char *request, const char *lines, const char *value, const char *want)
{
    struct story s;
    _cleanup_(buf_done) struct buf out = BUF_INIT(CREDENTIAL_HEAD_MAX);
    tell(&s, request, lines, value);
    CHECK_OK(credential_write(&s.c, &out));
    CHECK_STR(out.data, want);
    bindings_done(&s.bindings);
}

#define REST "Accept-Encoding: identity\r\n"

TEST(a_clients_own_credential_stays_behind)
{
    check(
        "GET /v1/x HTTP/1.1\r\nHost: other.test\r\nAuthorization: Bearer mine\r\n"
        "authorization: Basic bWluZQ==\r\nX: y\r\nConnection: X-Gone, authorization\r\nX-Gone: 1\r\n\r\n",
        "secret=s host=api.test as=bearer", "v4lue",
        "GET /v1/x HTTP/1.1\r\nHost: api.test\r\nX: y\r\n" REST
        "Authorization: Bearer v4lue\r\n\r\n");
}

TEST(each_form_puts_the_value_in_its_place)
{
    static const char request[] =
        "POST /a?key=0&b=%20c HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
#define HEAD(target_) "POST " target_ " HTTP/1.1\r\nHost: api.test\r\nContent-Length: 3\r\n" REST
    check(request, "secret=s host=api.test as=header header=X-Api-Key", "v",
          HEAD("/a?key=0&b=%20c") "X-Api-Key: v\r\n\r\n");
    check(request, "secret=s host=api.test as=header header=X-Auth format=\"Token {};x\"", "v",
          HEAD("/a?key=0&b=%20c") "X-Auth: Token v;x\r\n\r\n");
    check(request, "secret=s host=api.test as=basic user=me", "pass",
          HEAD("/a?key=0&b=%20c") "Authorization: Basic bWU6cGFzcw==\r\n\r\n");
    check(request, "secret=s host=api.test as=query query=key", "a b/+&",
          HEAD("/a?b=%20c&key=a%20b%2F%2B%26") "\r\n");
#undef HEAD
}

TEST(a_parameter_of_that_name_stays_behind_however_it_is_written)
{
    static const char *const cases[][2] = {
        { "/", "/?key=v" },
        { "/?", "/?key=v" },
        { "/?key", "/?key=v" },
        { "/?k%65y=1", "/?key=v" },
        { "/?a=1;key=2;b=3", "/?a=1;b=3&key=v" },
        { "/?keys=1&akey=2&key=3&key=4", "/?keys=1&akey=2&key=v" },
        { "/?key=3&keys=1", "/?keys=1&key=v" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char request[200], want[200];
        (void)snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", cases[i][0]);
        (void)snprintf(want, sizeof(want), "GET %s HTTP/1.1\r\nHost: api.test\r\n" REST "\r\n",
                       cases[i][1]);
        check(request, "secret=s host=api.test as=query query=key", "v", want);
    }
}

TEST(all_that_fit_are_put_in_and_the_first_of_two_that_set_the_same)
{
    check("GET / HTTP/1.1\r\nHost: a\r\nx-two: mine\r\n\r\n",
          "secret=s host=api.test as=bearer\n"
          "secret=t host=api.test as=basic user=u\n"
          "value=plain host=api.test as=header header=X-Two\n",
          "v",
          "GET / HTTP/1.1\r\nHost: api.test\r\n" REST
          "Authorization: Bearer v\r\nX-Two: plain\r\n\r\n");
}

TEST(fields_that_would_change_the_request_or_hide_the_answer_stay_behind)
{
    check(
        "GET / HTTP/1.1\r\nHost: a\r\nX-HTTP-Method-Override: DELETE\r\nx-original-url: /admin\r\n"
        "X_HTTP_Method_Override: DELETE\r\nX_Original-URL: /admin\r\nauthorization_: x\r\n"
        "Accept-Encoding: gzip\r\nRange: bytes=0-2\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
        "secret=s host=api.test as=bearer", "v",
        "GET / HTTP/1.1\r\nHost: api.test\r\nauthorization_: x\r\n" REST
        "Authorization: Bearer v\r\n\r\n");
    check("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
          "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
          "secret=s host=api.test as=bearer", "v",
          "GET / HTTP/1.1\r\nHost: api.test\r\n" REST
          "Authorization: Bearer v\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
}

TEST(without_a_value_nothing_is_written)
{
    struct story s;
    _cleanup_(buf_done) struct buf out = BUF_INIT(CREDENTIAL_HEAD_MAX);
    tell(&s, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "secret=s host=api.test as=bearer", NULL);
    CHECK_EQ(credential_write(&s.c, &out), -ENODATA);
    bindings_done(&s.bindings);
    tell(&s, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "secret=s host=api.test as=bearer", "a\r\nX: y");
    CHECK_EQ(credential_write(&s.c, &out), -ENODATA);
    bindings_done(&s.bindings);
}

#define SIGNED "secret=s host=api.test as=sigv4 access_key=AKIDEXAMPLE region=us-east-1 service="
#define KEY "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

TEST(a_request_is_signed_with_what_is_sent)
{
    struct story s;
    _cleanup_(buf_done) struct buf out = BUF_INIT(CREDENTIAL_HEAD_MAX);
    tell(&s, "GET / HTTP/1.1\r\nHost: a\r\nX-Amz-Date: old\r\nAuthorization: AWS4 old\r\n\r\n",
         SIGNED "service", KEY);
    s.c.host = "example.amazonaws.com";
    CHECK(!credential_gathers(&s.c));
    CHECK_OK(credential_write(&s.c, &out));
    CHECK_STR(out.data,
              "GET / HTTP/1.1\r\nHost: example.amazonaws.com\r\n" REST
              "X-Amz-Date: 20150830T123600Z\r\n"
              "Authorization: AWS4-HMAC-SHA256 "
              "Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
              "SignedHeaders=host;x-amz-date, "
              "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31\r\n\r\n");
    bindings_done(&s.bindings);
}

TEST(a_body_is_hashed_or_said_to_be_unsigned)
{
    static const char request[] =
        "PUT /k HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    struct story s;
    _cleanup_(buf_done) struct buf out = BUF_INIT(CREDENTIAL_HEAD_MAX);
    tell(&s, request, SIGNED "lambda", KEY);
    CHECK(credential_gathers(&s.c));
    s.c.hash = "00";
    s.c.length = 7;
    CHECK_OK(credential_write(&s.c, &out));
    CHECK(strstr(out.data, "\r\nContent-Length: 7\r\n\r\n"));
    bindings_done(&s.bindings);
    buf_clear(&out);
    tell(&s, request, SIGNED "s3", KEY);
    CHECK(!credential_gathers(&s.c));
    CHECK_OK(credential_write(&s.c, &out));
    CHECK(strstr(out.data, "\r\nX-Amz-Content-Sha256: UNSIGNED-PAYLOAD\r\n"));
    CHECK(strstr(out.data, "\r\nTransfer-Encoding: chunked\r\n\r\n"));
    bindings_done(&s.bindings);
    tell(&s,
         "PUT /k HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n"
         "X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\r\n\r\n",
         SIGNED "s3", KEY);
    CHECK_EQ(credential_write(&s.c, &out), -EPROTONOSUPPORT);
    bindings_done(&s.bindings);
}

TEST(nothing_follows_a_body_that_a_server_may_leave_unread)
{
    static const struct {
        const char *request;
        bool last;
    } cases[] = {
        { "GET /k HTTP/1.1\r\nHost: a\r\n\r\n", false },
        { "POST /k HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", false },
        { "GET /k HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", true },
        { "DELETE /k HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", true },
        { "GET /k HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nConnection: Upgrade\r\n"
          "Upgrade: websocket\r\n\r\n",
          true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct story s;
        _cleanup_(buf_done) struct buf out = BUF_INIT(CREDENTIAL_HEAD_MAX);
        tell(&s, cases[i].request, SIGNED "s3", KEY);
        CHECK_OK(credential_write(&s.c, &out));
        CHECK_EQ(strstr(out.data, "\r\nConnection: close\r\n") != NULL, cases[i].last);
        CHECK_EQ(credential_is_last(s.c.head), cases[i].last);
        CHECK(!cases[i].last || !strstr(out.data, "Upgrade"));
        bindings_done(&s.bindings);
    }
}
