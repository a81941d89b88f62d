#include "cli/ndjson.h"

#include <errno.h>

#include "base/check.h"

static int collect(void *arg, const json_t *object)
{
    struct buf *out = arg;
    return buf_printf(out, "%lld,", (long long)json_integer_value(json_object_get(object, "n")));
}

static int refuse(void *arg, const json_t *object)
{
    (void)arg;
    (void)object;
    return -ECANCELED;
}

TEST(lines_come_out_whole_however_they_arrive)
{
    static const char text[] = "{\"n\":1}\n\n{\"n\":22}\r\n{\"n\":333}";
    for (size_t step = 1; step < sizeof(text); step++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(100);
        _cleanup_(ndjson_done) struct ndjson nd;
        ndjson_init(&nd, collect, &out);
        size_t len = sizeof(text) - 1;
        for (size_t at = 0; at < len; at += step)
            CHECK_OK(ndjson_feed(&nd, text + at, len - at < step ? len - at : step));
        CHECK_OK(ndjson_end(&nd));
        CHECK_STR(out.data, "1,22,333,");
    }
}

TEST(what_is_not_an_object_is_refused)
{
    static const char *const bad[] = { "nonsense\n", "[1]\n", "{\"a\":\n", "7\n" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(100);
        _cleanup_(ndjson_done) struct ndjson nd;
        ndjson_init(&nd, collect, &out);
        CHECK_EQ(ndjson_feed(&nd, bad[i], strlen(bad[i])), -EPROTO);
    }
}

TEST(an_endless_line_is_refused)
{
    static char block[64 * 1024];
    _cleanup_(ndjson_done) struct ndjson nd;
    int r = 0;
    memset(block, 'x', sizeof(block));
    ndjson_init(&nd, collect, NULL);
    for (int i = 0; i < 40 && r == 0; i++)
        r = ndjson_feed(&nd, block, sizeof(block));
    CHECK_EQ(r, -EMSGSIZE);
}

TEST(the_reader_of_lines_can_stop_the_stream)
{
    _cleanup_(ndjson_done) struct ndjson nd;
    ndjson_init(&nd, refuse, NULL);
    CHECK_EQ(ndjson_feed(&nd, "{}\n{}\n", 6), -ECANCELED);
}

TEST(output_bytes_are_read_from_text_and_from_base64)
{
    static const struct {
        const char *json, *bytes;
        size_t n;
    } cases[] = {
        { "{\"data\":\"h\\u0000i\"}", "h\0i", 3 },
        { "{\"data_b64\":\"//8A\"}", "\xff\xff\0", 3 },
        { "{\"data_b64\":\"aGk=\"}", "hi", 2 },
        { "{\"data_b64\":\"\"}", "", 0 },
    };
    static const char *const bad[] = { "{}", "{\"data\":1}", "{\"data_b64\":\"a\"}",
                                       "{\"data_b64\":\"a*==\"}" };
    _cleanup_(buf_done) struct buf scratch = BUF_INIT(100);
    const char *p;
    size_t n;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *o = json_loads(cases[i].json, JSON_ALLOW_NUL, NULL);
        CHECK_OK(event_bytes(o, &scratch, &p, &n));
        CHECK_EQ(n, cases[i].n);
        CHECK_MEM(p, cases[i].bytes, n);
        json_decref(o);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        json_t *o = json_loads(bad[i], 0, NULL);
        CHECK_EQ(event_bytes(o, &scratch, &p, &n), -EPROTO);
        json_decref(o);
    }
}
