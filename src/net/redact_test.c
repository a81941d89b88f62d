#include "net/redact.h"

#include <errno.h>

#include "base/check.h"

#define BYTES(text_) (text_), sizeof(text_) - 1
#define SECRET "sk-live/9+Zx\"Q&7é"

/* What comes out when it goes in in pieces of this size. */
static void pass(struct redact_words *w, const char *p, size_t n, size_t piece, struct buf *out)
{
    struct redact b;
    CHECK_OK(redact_init(&b, w));
    for (size_t at = 0; at < n; at += piece)
        CHECK_OK(redact_take(&b, p + at, n - at < piece ? n - at : piece, out));
    CHECK_OK(redact_end(&b, out));
    redact_done(&b);
    CHECK_EQ(out->len, n);
}

static struct redact_words *words_of(const char *one, const char *two)
{
    struct redact_words *w = redact_words_new();
    CHECK(w);
    CHECK_OK(redact_words_add(w, one, strlen(one)));
    CHECK_OK(redact_words_add(w, two, strlen(two)));
    return w;
}

static void check_all_cuts(struct redact_words *w, const char *in, const char *want)
{
    for (size_t piece = 1; piece <= strlen(in); piece++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
        pass(w, in, strlen(in), piece, &out);
        CHECK_STR(out.data, want);
    }
}

TEST(a_secret_is_redacted_in_every_form_that_servers_echo)
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
    _cleanup_(redact_words_unrefp) struct redact_words *w = words_of(SECRET, "");
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

static void check_hidden(const char *in)
{
    _cleanup_(redact_words_unrefp) struct redact_words *w = words_of("Secret-Value-12", "");
    for (size_t piece = 1; piece <= strlen(in); piece++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
        size_t left = 0;
        pass(w, in, strlen(in), piece, &out);
        for (size_t at = 0; at < out.len; at++)
            left += out.data[at] != '*' && out.data[at] != '=';
        if (left > 8) /* bytes before the secret, and one character on either side */
            fail_msg("'%s' became '%s'", in, out.data);
    }
}
/* A form may share its first and last character with its surroundings, so up to two characters
 * may stay; brackets and line ends around it need not go. */
TEST(a_secret_is_found_in_forms_that_change_every_byte)
{
    static const struct {
        const char *what, *form;
        size_t n;
    } cases[] = {
        { "mixed-case hex", BYTES("536b2D6C6976652f392B5a78225126373d62") },
        { "aa:bb", BYTES("53:6b:2d:6c:69:76:65:2f:39:2b:5a:78:22:51:26:37:3d:62") },
        { "AA-BB", BYTES("53-6B-2D-6C-69-76-65-2F-39-2B-5A-78-22-51-26-37-3D-62") },
        { "hex in lines",
          BYTES(
              "536b2d6c\015\012    6976652f\015\012    392b5a78\015\012    22512637\015\012    3d62") },
        { "numbers of bytes",
          BYTES("[83, 107, 45, 108, 105, 118, 101, 47, 57, 43, 90, 120, 34, 81, 38, 55, 61, 98]") },
        { "lower case", BYTES("sk-live/9+zx\"q&7=b") },
        { "upper case", BYTES("SK-LIVE/9+ZX\"Q&7=B") },
        { "percent twice",
          BYTES(
              "%2553%256b%252d%256c%2569%2576%2565%252f%2539%252b%255a%2578%2522%2551%2526%2537%253d%2562") },
        { "partly twice", BYTES("Sk-live%252F9%252bZx%2522Q&7=b") },
        { "JSON in JSON", BYTES("Sk-live/9+Zx\\\\\\\"Q&7=b") },
        { "JSON numbers in JSON",
          BYTES(
              "\\\\u0053\\\\u006b\\\\u002d\\\\u006c\\\\u0069\\\\u0076\\\\u0065\\\\u002f\\\\u0039\\\\u002b\\\\u005a\\\\u0078\\\\u0022\\\\u0051\\\\u0026\\\\u0037\\\\u003d\\\\u0062") },
        { "UTF-16LE",
          BYTES(
              "S\000k\000-\000l\000i\000v\000e\000/\0009\000+\000Z\000x\000\"\000Q\000&\0007\000=\000b") },
        { "UTF-16BE",
          BYTES(
              "S\000k\000-\000l\000i\000v\000e\000/\0009\000+\000Z\000x\000\"\000Q\000&\0007\000=\000b") },
        { "UTF-32LE",
          BYTES(
              "S\000\000\000k\000\000\000-\000\000\000l\000\000\000i\000\000\000v\000\000\000e\000\000\000/\000\000\0009\000\000\000+\000\000\000Z\000\000\000x\000\000\000\"\000\000\000Q\000\000\000&\000\000\0007\000\000\000=\000\000\000b") },
        { "octal",
          BYTES(
              "\\123\\153\\055\\154\\151\\166\\145\\057\\071\\053\\132\\170\\042\\121\\046\\067\\075\\142") },
        { "quoted-printable", BYTES("Sk-live/9+Zx\"Q&7=3Db") },
        { "all quoted", BYTES("=53=6B=2D=6C=69=76=65=2F=39=2B=5A=78=22=51=26=37=3D=62") },
        { "quoted in lines", BYTES("Sk-li=\015\012ve/9+=\015\012Zx\"Q&7=3Db") },
        { "wrapped", BYTES("S\015\012k-live/9+Zx\"Q&7=b") },
        { "wrapped later", BYTES("Sk-live/9\012  +Zx\"Q&7=b") },
        { "base32", BYTES("KNVS23DJOZSS6OJLLJ4CEUJGG46WE") },
        { "base32, lower, in groups", BYTES("knvs 23dj ozss 6ojl lj4c eujg g46w e") },
        { "backwards", BYTES("b=7&Q\"xZ+9/evil-kS") },
    };
    _cleanup_(redact_words_unrefp) struct redact_words *w = words_of("Sk-live/9+Zx\"Q&7=b", "");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t piece = 1; piece <= cases[i].n + 4; piece++) {
            _cleanup_(buf_done) struct buf in = BUF_INIT(65536), out = BUF_INIT(65536);
            CHECK_OK(buf_append(&in, "<; ", 3));
            CHECK_OK(buf_append(&in, cases[i].form, cases[i].n));
            CHECK_OK(buf_append(&in, " ;>", 3));
            pass(w, in.data, in.len, piece, &out);
            size_t stars = 0;
            for (size_t at = 0; at < out.len; at++)
                stars += out.data[at] == '*';
            if (stars + 3 < cases[i].n || memcmp(out.data, "<; ", 3) != 0 ||
                memcmp(out.data + out.len - 3, " ;>", 3) != 0)
                fail_msg("%s in pieces of %zu: %s", cases[i].what, piece, out.data);
        }
}

TEST(base32_is_found_at_every_place_in_its_group)
{
    check_hidden("KNSWG4TFOQWVMYLMOVSS2MJS");
    check_hidden("MFJWKY3SMV2C2VTBNR2WKLJRGI======");
    check_hidden("MFQVGZLDOJSXILKWMFWHKZJNGEZA====");
    check_hidden("MFQWCU3FMNZGK5BNKZQWY5LFFUYTE===");
    check_hidden("MFQWCYKTMVRXEZLUFVLGC3DVMUWTCMQ=");
}

/* The end of an event must not wait for the next one, whatever its last character is. */
TEST(the_end_of_an_event_is_let_go)
{
    _cleanup_(redact_words_unrefp) struct redact_words *w = words_of("Secret-Value-12", "");
    for (int c = ' '; c < 0x7f; c++) {
        char event[] = "data: ?\n\n";
        _cleanup_(buf_done) struct buf out = BUF_INIT(100);
        struct redact b;
        event[6] = (char)c;
        CHECK_OK(redact_init(&b, w));
        CHECK_OK(redact_take(&b, event, strlen(event), &out));
        CHECK_EQ(out.len, strlen(event));
        redact_done(&b);
    }
}

TEST(what_stands_before_a_secret_makes_no_escape_of_it)
{
    _cleanup_(redact_words_unrefp) struct redact_words *w = words_of("abcdef-12", "");
    check_all_cuts(w, "%ABCDEF-12 \\x%abcdef-12", "%********* \\x%*********");
}

TEST(a_short_secret_is_found_as_it_is_alone)
{
    _cleanup_(redact_words_unrefp) struct redact_words *w = words_of("ab-c", "");
    check_all_cuts(w, "abc ABC cba 99 ab-c", "abc ABC cba 99 ****");
}

TEST(what_only_begins_like_a_form_is_let_go)
{
    _cleanup_(redact_words_unrefp) struct redact_words *w = words_of("Secret-Value-12", "");
    static const char *const texts[] = {
        "53:65:63:72:00",       "secret",           "KNSWG4TFOQ",
        "536563726574",         "%2553%2565%2563",  "21-eul",
        "\\123\\145\\143\\162", "83, 101, 99, 114", "U2VjcmV0",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        check_all_cuts(w, texts[i], texts[i]);
}

/* Of a character that it shares with its neighbour a few bits are left. */
TEST(base64_is_found_at_every_place_in_its_group)
{
    _cleanup_(redact_words_unrefp) struct redact_words *w = words_of("Secret-Value-12", "");
    check_all_cuts(w, "U2VjcmV0LVZhbHVlLTEy", "********************");
    check_all_cuts(w, "YVNlY3JldC1WYWx1ZS0xMg==", "YV********************==");
    check_all_cuts(w, "YWFTZWNyZXQtVmFsdWUtMTI=", "YWF********************=");
}

TEST(urls_alphabet_is_the_same_to_it)
{
    _cleanup_(redact_words_unrefp) struct redact_words *w =
        words_of("\xfb\xff\xbe\xfb\xff\xbe", "");
    check_all_cuts(w, "++/7/++-", "++/7/++-");
    check_all_cuts(w, "+/+++/++", "********");
    check_all_cuts(w, "-_---_--", "********");
}

TEST(several_secrets_that_overlap_are_all_found)
{
    _cleanup_(redact_words_unrefp) struct redact_words *w = words_of("abcdefgh", "cdef");
    check_all_cuts(w, "..abcdefX..cdef..abcdefgh", "..ab****X..****..********");
    check_all_cuts(w, "ababcdefgh", "ab********");
    check_all_cuts(w, "abcdecdef", "abcde****");
}

TEST(a_secret_that_looks_like_an_escape_is_found_as_it_is)
{
    _cleanup_(redact_words_unrefp) struct redact_words *w = words_of("a%41b\\nc", "");
    check_all_cuts(w, "<a%41b\\nc>", "<********>");
    check_all_cuts(w, "<a%2541b%5Cnc>", "<************>");
}

TEST(bytes_are_held_only_while_they_may_begin_a_secret)
{
    _cleanup_(redact_words_unrefp) struct redact_words *w = words_of("token", "");
    _cleanup_(buf_done) struct buf out = BUF_INIT(100);
    struct redact b;
    CHECK_OK(redact_init(&b, w));
    CHECK_OK(redact_take(&b, "data: x\n\n", 9, &out));
    CHECK_EQ(out.len, 9);
    CHECK_OK(redact_take(&b, "to", 2, &out));
    CHECK_EQ(out.len, 9);
    CHECK_OK(redact_take(&b, "m", 1, &out));
    CHECK_STR(out.data, "data: x\n\ntom");
    CHECK_OK(redact_take(&b, " token", 6, &out)); /* all of it is there */
    CHECK_STR(out.data, "data: x\n\ntom *****");
    redact_done(&b);
}

TEST(a_secret_that_the_end_cut_off_is_redacted_too)
{
    _cleanup_(redact_words_unrefp) struct redact_words *w = words_of("0123456789abcdef", "");
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
    _cleanup_(redact_words_unrefp) struct redact_words *w =
        words_of("sk-ant-api03-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "");
    for (size_t i = 0; i < ARRAY_LEN(guesses); i++)
        check_all_cuts(w, guesses[i], guesses[i]);
    check_all_cuts(w, "x sk-ant-api03-ABCDEFGHIJKLMNOPQRSTU",
                   "x **********************************");
    _cleanup_(redact_words_unrefp) struct redact_words *pair = redact_words_new();
    CHECK_OK(redact_words_add_behind(pair, "well-known-user:Pass-Word-9", 27, 16));
    check_all_cuts(pair, "well-known-user:Pass-Wo", "well-known-user:Pass-Wo");
    check_all_cuts(pair, "well-known-user:Pass-Word", "*************************");
    check_all_cuts(pair, "d2VsbC1rbm93bi11c2VyOlBhc3M", "d2VsbC1rbm93bi11c2VyOlBhc3M");
}

TEST(breaks_within_base64_hold_no_more_than_a_few)
{
    _cleanup_(redact_words_unrefp) struct redact_words *w = words_of("Secret-Value-12", "");
    _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
    struct redact b;
    CHECK_OK(redact_init(&b, w));
    CHECK_OK(redact_take(&b, "U2Vjcm", 6, &out));
    for (int i = 0; i < 100000; i++)
        CHECK_OK(redact_take(&b, "\n", 1, &out));
    CHECK_EQ(out.len, 100006);
    redact_done(&b);
}

TEST(nothing_is_looked_for_without_secrets_and_none_may_be_too_long)
{
    static char big[REDACT_WORD_MAX + 1];
    _cleanup_(redact_words_unrefp) struct redact_words *w = words_of("", "");
    char text[] = "all of it";
    CHECK_OK(redact_whole(w, text, strlen(text)));
    CHECK_OK(redact_whole(NULL, text, strlen(text)));
    CHECK_STR(text, "all of it");
    CHECK_EQ(redact_words_add(w, big, sizeof(big)), -E2BIG);
}
