#include "base/base64.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

TEST(bytes_become_text_and_come_back)
{
    static const struct {
        const char *bytes, *text;
    } cases[] = { { "", "" },
                  { "f", "Zg==" },
                  { "fo", "Zm8=" },
                  { "foo", "Zm9v" },
                  { "foob", "Zm9vYg==" },
                  { "\xff\xfe\xfd", "//79" },
                  { "~~~~", "fn5+fg==" } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_(buf_done) struct buf text = BUF_INIT(64);
        _cleanup_(buf_done) struct buf bytes = BUF_INIT(64);
        CHECK_OK(base64_encode(cases[i].bytes, strlen(cases[i].bytes), &text));
        CHECK_STR(text.data, cases[i].text);
        CHECK_OK(base64_decode(text.data, text.len, &bytes));
        CHECK_STR(bytes.data, cases[i].bytes);
    }
}

TEST(padding_may_be_left_out_and_nothing_else)
{
    static const char *const wrong[] = { "Zm9vY", "Zm 9v", "Zm9v\n", "Zg===", "=", "Zm-_", "Zg=v" };
    _cleanup_(buf_done) struct buf b = BUF_INIT(64);
    CHECK_OK(base64_decode("Zm9vYg", 6, &b));
    CHECK_STR(b.data, "foob");
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        CHECK_EQ(base64_decode(wrong[i], strlen(wrong[i]), &b), -EPROTO);
    CHECK_STR(b.data, "foob"); /* a failure adds nothing */
}
