#include "cli/sanitise.h"

#include "base/check.h"

static const struct {
    const char *in, *out;
} cases[] = {
    { "plain\n\ttext", "plain\n\ttext" },
    { "\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m" },
    { "\x1b[1;38;2;1;2;3mx\x1b[m", "\x1b[1;38;2;1;2;3mx\x1b[m" },
    { "\x1b[31mleft on", "\x1b[31mleft on\x1b[0m" },
    { "\x1b]0;title\x07", "^[]0;title^G" },
    { "\x1b[2J", "^[[2J" },
    { "\x1b[?25l", "^[[?25l" },
    { "\x1b\x1b[32mx\x1b[0m", "^[\x1b[32mx\x1b[0m" },
    { "bell\a back\b del\x7f", "bell^G back^H del^?" },
    { "dos\r\nline", "dos\nline" },
    { "over\rwritten", "over^Mwritten" },
    { "caf\xc3\xa9 \xe2\x9c\x93 \xf0\x9f\x90\xb0", "caf\xc3\xa9 \xe2\x9c\x93 \xf0\x9f\x90\xb0" },
    { "c1 \xc2\x9b"
      "31m",
      "c1 \\u009b31m" },
    { "raw \x9b"
      "31m",
      "raw \\x9b31m" },
    { "cut \xe2\x9c", "cut \\xe2\\x9c" },
    { "overlong \xe0\x80\x80", "overlong \\xe0\\x80\\x80" },
    { "surrogate \xed\xa0\x80", "surrogate \\xed\\xa0\\x80" },
    { "bidi \xe2\x80\xae", "bidi \\u202e" },
    { "end\x1b", "end^[" },
    { "\x1b[1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1mlong",
      "^[[1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1mlong" },
};

static void check_cut_every(size_t step)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
        struct sanitiser s = { .n = 0 };
        size_t len = strlen(cases[i].in);
        for (size_t at = 0; at < len; at += step)
            CHECK_OK(sanitise(&s, cases[i].in + at, len - at < step ? len - at : step, &out));
        CHECK_OK(sanitise_end(&s, &out));
        CHECK_STR(out.data, cases[i].out);
    }
}

TEST(what_could_drive_a_terminal_is_shown_instead)
{
    check_cut_every(1000);
}

TEST(it_makes_no_difference_where_the_stream_is_cut)
{
    for (size_t step = 1; step < 6; step++)
        check_cut_every(step);
}

TEST(a_nul_byte_is_shown)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(64);
    struct sanitiser s = { .n = 0 };
    CHECK_OK(sanitise(&s, "a\0b", 3, &out));
    CHECK_STR(out.data, "a^@b");
}

TEST(table_text_is_one_line_without_colours)
{
    _cleanup_free_ char *t = text_line("a\nb\tc\x1b[31md\r");
    CHECK_STR(t, "a\\nb\\tc^[[31md\\r");
    _cleanup_free_ char *none = text_line(NULL);
    CHECK_STR(none, "");
}

TEST(width_counts_characters)
{
    CHECK_EQ(text_width("caf\xc3\xa9"), 4);
}
