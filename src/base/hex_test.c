#include "base/hex.h"

#include <errno.h>

#include "base/check.h"

TEST(bytes_come_back_as_they_were)
{
    const unsigned char bytes[] = { 0x00, 0x7f, 0x80, 0xff };
    char text[2 * sizeof(bytes) + 1];
    unsigned char back[sizeof(bytes)];
    hex_encode(bytes, sizeof(bytes), text);
    CHECK_STR(text, "007f80ff");
    CHECK_OK(hex_decode(text, back, sizeof(back)));
    CHECK_MEM(back, bytes, sizeof(bytes));
}

TEST(other_texts_are_no_bytes)
{
    static const char *const texts[] = { "", "00", "000", "00000", "0g00", "00FF", " 000", "0x00" };
    unsigned char out[2];
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        CHECK_EQ(hex_decode(texts[i], out, sizeof(out)), -EINVAL);
}

TEST(a_percent_sign_and_two_digits_are_a_byte)
{
    CHECK_EQ(hex_percent("%41", 3), 'A');
    CHECK_EQ(hex_percent("%fFx", 4), 0xff);
    CHECK_EQ(hex_percent("%00", 3), 0);
    CHECK_EQ(hex_percent("%41", 2), -1);
    CHECK_EQ(hex_percent("%4", 2), -1);
    CHECK_EQ(hex_percent("%4g", 3), -1);
    CHECK_EQ(hex_percent("41", 2), -1);
    CHECK_EQ(hex_percent("", 0), -1);
}

TEST(digits_have_either_case)
{
    CHECK_EQ(hex_digit('a'), 10);
    CHECK_EQ(hex_digit('F'), 15);
    CHECK_EQ(hex_digit('g'), -1);
    CHECK_EQ(hex_digit('/'), -1);
    CHECK_EQ(hex_digit(':'), -1);
    CHECK_EQ(hex_digit('@'), -1);
    CHECK_EQ(hex_digit('\x10'), -1); /* '0' with one bit less */
    CHECK_EQ(hex_digit('\0'), -1);
}
