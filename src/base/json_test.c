#include "base/json.h"

#include <errno.h>

#include "base/check.h"

TEST(a_document_is_written_as_it_reads)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(1000);
    struct jout j = JOUT_INIT(&b);

    jout_open(&j, NULL, '{');
    jout_str(&j, "a", "x\"\\\n\x01\x7f");
    jout_null(&j, "n");
    jout_open(&j, "list", '[');
    jout_int(&j, NULL, -5);
    jout_bool(&j, NULL, true);
    jout_close(&j, ']');
    jout_open(&j, "o", '{');
    jout_close(&j, '}');
    jout_uint(&j, "u", UINT64_MAX);
    jout_thousandths(&j, "t", 1500);
    jout_thousandths(&j, "h", 50);
    jout_time(&j, "when", 0);
    jout_member(&j, "k\"", "v");
    jout_close(&j, '}');
    CHECK_OK(jout_done(&j));
    CHECK_STR(b.data,
              "{\"a\":\"x\\\"\\\\\\n\\u0001\\u007f\",\"n\":null,\"list\":[-5,true],\"o\":{},"
              "\"u\":18446744073709551615,\"t\":1.5,\"h\":0.05,\"when\":null,\"k\\\"\":\"v\"}");
}

TEST(bytes_that_are_no_text_are_mended)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(1000);
    struct jout j = JOUT_INIT(&b);

    jout_strn(&j, NULL, "a\xff\xc3\xa9\xe2\x82", 6);
    CHECK_OK(jout_done(&j));
    CHECK_STR(b.data, "\"a\\ufffd\xc3\xa9\\ufffd\\ufffd\"");
}

TEST(base64_has_the_usual_padding)
{
    static const char *const want[] = { "\"\"", "\"Zg==\"", "\"Zm8=\"", "\"Zm9v\"",
                                        "\"Zm9vYg==\"" };

    for (size_t n = 0; n < ARRAY_LEN(want); n++) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(100);
        struct jout j = JOUT_INIT(&b);
        jout_b64(&j, NULL, "foob", n);
        CHECK_OK(jout_done(&j));
        CHECK_STR(b.data, want[n]);
    }
}

TEST(a_full_buffer_is_said_once_at_the_end)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(8);
    struct jout j = JOUT_INIT(&b);

    jout_str(&j, NULL, "0123456789");
    jout_int(&j, NULL, 1);
    CHECK_EQ(jout_done(&j), -EMSGSIZE);
}

TEST(only_strict_utf8_is_utf8)
{
    static const struct {
        const char *p;
        size_t n;
        bool ok;
    } cases[] = {
        { "", 0, true },
        { "plain", 5, true },
        { "\xc3\xa9", 2, true },
        { "\xf0\x9f\x90\x87", 4, true },
        { "\xc0\xaf", 2, false },         /* overlong */
        { "\xe0\x80\xaf", 3, false },     /* overlong */
        { "\xf0\x80\x80\xaf", 4, false }, /* overlong */
        { "\xed\xa0\x80", 3, false },     /* surrogate */
        { "\xf4\x90\x80\x80", 4, false }, /* above the last */
        { "\xe2\x82", 2, false },         /* cut */
        { "\x80", 1, false },
        { "\xff", 1, false },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_EQ(utf8_valid(cases[i].p, cases[i].n), cases[i].ok);
    CHECK(utf8_valid("a\0b", 3));
    CHECK(!text_valid("a\0b", 3));
}

TEST(depth_is_counted_outside_of_text)
{
    char deep[2 * JSON_SHALLOW_MAX + 3];
    memset(deep, '[', sizeof(deep));
    CHECK(json_shallow(deep, JSON_SHALLOW_MAX));
    CHECK(!json_shallow(deep, JSON_SHALLOW_MAX + 1));
    deep[0] = '"'; /* a text of brackets */
    CHECK(json_shallow(deep, sizeof(deep)));
    for (size_t i = 0; i < sizeof(deep); i++)
        deep[i] = "{}"[i % 2];
    CHECK(json_shallow(deep, sizeof(deep) - 1));
    CHECK(json_shallow("\"\\\"[[", 5));
    CHECK(json_shallow("", 0));
}
