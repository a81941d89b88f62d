#include "net/blot.h"

#include <errno.h>

#include "base/check.h"

#define SECRET "sk-live/9+Zx\"Q&7é"

/* What comes out when it goes in in pieces of this size. */
static void pass(struct blot_words *w, const char *p, size_t n, size_t piece, struct buf *out)
{
    struct blot b;
    CHECK_OK(blot_init(&b, w));
    for (size_t at = 0; at < n; at += piece)
        CHECK_OK(blot_take(&b, p + at, n - at < piece ? n - at : piece, out));
    CHECK_OK(blot_end(&b, out));
    blot_done(&b);
    CHECK_EQ(out->len, n);
}

static struct blot_words *words_of(const char *one, const char *two)
{
    struct blot_words *w = blot_words_new();
    CHECK(w);
    CHECK_OK(blot_words_add(w, one, strlen(one)));
    CHECK_OK(blot_words_add(w, two, strlen(two)));
    return w;
}

static void check_all_cuts(struct blot_words *w, const char *in, const char *want)
{
    for (size_t piece = 1; piece <= strlen(in); piece++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
        pass(w, in, strlen(in), piece, &out);
        CHECK_STR(out.data, want);
    }
}

TEST(a_secret_is_blotted_in_every_form_that_servers_echo)
{
    static const struct {
        const char *before, *form, *after;
    } cases[] = {
        { "key=", SECRET, ";" },
        { "", SECRET SECRET, "" },
        { "a sk-live b", "", "" },
        { "x ", "sk-live%2F9%2BZx%22Q%267%C3%A9", " y" },
        { "x ", "sk-live%2f9%2bZx%22Q%267%c3%a9", " y" },
        { "", "%73k%2Dlive/9+Zx\"Q&7é", "." },
        { "\"", "sk-live\\/9+Zx\\\"Q&7\\u00e9", "\"" },
        { "\"", "sk-live/9+Zx\\u0022Q\\u00267\\u00E9", "\"" },
        { "<b>", "sk-live/9&#43;Zx&quot;Q&amp;7&#xe9;", "</b>" },
        { "", "c2stbGl2ZS85K1p4IlEmN8Op", "IA==" }, /* a blank behind it */
        { "", "c2stbGl2ZS85\r\n K1p4IlEmN8Op", "" },
        { "", "c2stbGl2ZS85K1p4%49lEmN8Op", "" },
        { "", "736b2d6c6976652f392b5a7822512637c3a9", "" },
        { "", "736B2D6C6976652F392B5A7822512637C3A9", "!" },
    };
    _cleanup_(blot_words_unrefp) struct blot_words *w = words_of(SECRET, "");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char in[128], want[128];
        char stars[100];
        size_t n = strlen(cases[i].form);
        memset(stars, '*', n);
        stars[n] = '\0';
        CHECK(snprintf(in, sizeof(in), "%s%s%s", cases[i].before, cases[i].form, cases[i].after) >
              0);
        CHECK(snprintf(want, sizeof(want), "%s%s%s", cases[i].before, stars, cases[i].after) > 0);
        check_all_cuts(w, in, want);
    }
}

/* Of a character that it shares with its neighbour a few bits are left. */
TEST(base64_is_found_at_every_place_in_its_group)
{
    _cleanup_(blot_words_unrefp) struct blot_words *w = words_of("Secret-Value-12", "");
    check_all_cuts(w, "U2VjcmV0LVZhbHVlLTEy", "********************");
    check_all_cuts(w, "YVNlY3JldC1WYWx1ZS0xMg==", "YV********************==");
    check_all_cuts(w, "YWFTZWNyZXQtVmFsdWUtMTI=", "YWF********************=");
}

TEST(urls_alphabet_is_the_same_to_it)
{
    _cleanup_(blot_words_unrefp) struct blot_words *w = words_of("\xfb\xff\xbe\xfb\xff\xbe", "");
    check_all_cuts(w, "++/7/++-", "++/7/++-");
    check_all_cuts(w, "+/+++/++", "********");
    check_all_cuts(w, "-_---_--", "********");
}

TEST(several_secrets_that_overlap_are_all_found)
{
    _cleanup_(blot_words_unrefp) struct blot_words *w = words_of("abcdefgh", "cdef");
    check_all_cuts(w, "..abcdefX..cdef..abcdefgh", "..ab****X..****..********");
    check_all_cuts(w, "ababcdefgh", "ab********");
    check_all_cuts(w, "abcdecdef", "abcde****");
}

TEST(a_secret_that_looks_like_an_escape_is_found_as_it_is)
{
    _cleanup_(blot_words_unrefp) struct blot_words *w = words_of("a%41b\\nc", "");
    check_all_cuts(w, "<a%41b\\nc>", "<********>");
    check_all_cuts(w, "<a%2541b%5Cnc>", "<************>");
}

TEST(bytes_are_held_only_while_they_may_begin_a_secret)
{
    _cleanup_(blot_words_unrefp) struct blot_words *w = words_of("token", "");
    _cleanup_(buf_done) struct buf out = BUF_INIT(100);
    struct blot b;
    CHECK_OK(blot_init(&b, w));
    CHECK_OK(blot_take(&b, "data: x\n\n", 9, &out));
    CHECK_EQ(out.len, 9);
    CHECK_OK(blot_take(&b, "to", 2, &out));
    CHECK_EQ(out.len, 9);
    CHECK_OK(blot_take(&b, "m", 1, &out));
    CHECK_STR(out.data, "data: x\n\ntom");
    CHECK_OK(blot_take(&b, " token", 6, &out)); /* all of it is there */
    CHECK_STR(out.data, "data: x\n\ntom *****");
    blot_done(&b);
}

TEST(a_secret_that_the_end_cut_off_is_blotted_too)
{
    _cleanup_(blot_words_unrefp) struct blot_words *w = words_of("0123456789abcdef", "");
    check_all_cuts(w, "x 0123456789abcde", "x ***************");
    check_all_cuts(w, "x 0123", "x 0123");
}

/* Else a server that says back what it is told would tell, a character at a time. */
TEST(who_guesses_how_a_secret_begins_is_not_told)
{
    static const char *const guesses[] = {
        "x sk-ant-api03-A", "x sk-ant-api03-B", "x sk-ant-api03-ABCDEFGH",  "&#x0073;", "&#x0074;",
        "%73%6b%2d%61",     "c2stYW50LWFwaTAz", "736b2d616e742d6170693033",
    };
    _cleanup_(blot_words_unrefp) struct blot_words *w =
        words_of("sk-ant-api03-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "");
    for (size_t i = 0; i < ARRAY_LEN(guesses); i++)
        check_all_cuts(w, guesses[i], guesses[i]);
    check_all_cuts(w, "x sk-ant-api03-ABCDEFGHIJKLMNOPQRSTU",
                   "x **********************************");
    _cleanup_(blot_words_unrefp) struct blot_words *pair = blot_words_new();
    CHECK_OK(blot_words_add_behind(pair, "well-known-user:Pass-Word-9", 27, 16));
    check_all_cuts(pair, "well-known-user:Pass-Wo", "well-known-user:Pass-Wo");
    check_all_cuts(pair, "well-known-user:Pass-Word", "*************************");
    check_all_cuts(pair, "d2VsbC1rbm93bi11c2VyOlBhc3M", "d2VsbC1rbm93bi11c2VyOlBhc3M");
}

TEST(breaks_within_base64_hold_no_more_than_a_few)
{
    _cleanup_(blot_words_unrefp) struct blot_words *w = words_of("Secret-Value-12", "");
    _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
    struct blot b;
    CHECK_OK(blot_init(&b, w));
    CHECK_OK(blot_take(&b, "U2Vjcm", 6, &out));
    for (int i = 0; i < 100000; i++)
        CHECK_OK(blot_take(&b, "\n", 1, &out));
    CHECK_EQ(out.len, 100006);
    blot_done(&b);
}

TEST(nothing_is_looked_for_without_secrets_and_none_may_be_too_long)
{
    static char big[BLOT_WORD_MAX + 1];
    _cleanup_(blot_words_unrefp) struct blot_words *w = words_of("", "");
    char text[] = "all of it";
    CHECK_OK(blot_whole(w, text, strlen(text)));
    CHECK_OK(blot_whole(NULL, text, strlen(text)));
    CHECK_STR(text, "all of it");
    CHECK_EQ(blot_words_add(w, big, sizeof(big)), -E2BIG);
}
