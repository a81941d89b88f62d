#include "unpack/textdiff.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/cleanup.h"

#define CHECK_DIFF(a_, b_, want_)                                      \
    do {                                                               \
        _cleanup_(buf_done) struct buf out_ = BUF_INIT(1u << 20);      \
        CHECK_OK(textdiff((a_), strlen(a_), (b_), strlen(b_), &out_)); \
        CHECK_STR(out_.data ? out_.data : "", want_);                  \
    } while (0)

TEST(equal_texts_have_no_hunk)
{
    CHECK_DIFF("", "", "");
    CHECK_DIFF("a\nb\n", "a\nb\n", "");
}

TEST(a_text_that_came_or_went)
{
    CHECK_DIFF("", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n");
    CHECK_DIFF("a\n", "", "@@ -1,1 +0,0 @@\n-a\n");
}

TEST(a_line_in_the_middle_with_three_around_it)
{
    CHECK_DIFF("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
               "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(changes_far_apart_are_two_hunks_and_near_ones_are_one)
{
    CHECK_DIFF("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
               "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n"
               "@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
    CHECK_DIFF("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n",
               "@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n");
}

TEST(the_last_line_without_its_newline)
{
    CHECK_DIFF("a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
}

TEST(a_limit_cuts_between_lines)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(39);
    CHECK_EQ(textdiff("", 0, "1234567890\n1234567890\n1234567890\n", 33, &out), -EMSGSIZE);
    CHECK_STR(out.data, "@@ -0,0 +1,3 @@\n+1234567890\n");
}

/* What a patch program would make of it; the diff is trusted to be in order. */
static void apply(const char *a, const char *hunks, struct buf *out)
{
    size_t line = 1, at, n;
    const char *p = hunks;
    while (*p) {
        unsigned long start = strtoul(p + 4, NULL, 10);
        const char *comma = strchr(p, ',');
        at = start + (strtoul(comma + 1, NULL, 10) == 0);
        for (; line < at; line++, a += n) {
            n = strcspn(a, "\n") + 1;
            CHECK_OK(buf_append(out, a, n));
        }
        for (p = strchr(p, '\n') + 1; *p && *p != '@'; p += n) {
            n = strcspn(p, "\n") + 1;
            if (*p != '-')
                CHECK_OK(buf_append(out, p + 1, n - 1));
            if (*p != '+') {
                CHECK_EQ(strncmp(a, p + 1, n - 1), 0);
                a += n - 1;
                line++;
            }
        }
    }
    CHECK_OK(buf_puts(out, a));
}

static void fill(struct buf *b, unsigned *seed, size_t lines, unsigned kinds)
{
    for (size_t i = 0; i < lines; i++) {
        *seed = *seed * 1103515245u + 12345u;
        CHECK_OK(buf_printf(b, "%u\n", (*seed >> 16) % kinds));
    }
}

static void check_round(unsigned seed, size_t lines, unsigned kinds)
{
    _cleanup_(buf_done) struct buf a = BUF_INIT(1u << 20), b = BUF_INIT(1u << 20);
    _cleanup_(buf_done) struct buf out = BUF_INIT(8u << 20), made = BUF_INIT(1u << 20);
    fill(&a, &seed, lines, kinds);
    fill(&b, &seed, seed % (lines + 1), kinds);
    CHECK_OK(buf_puts(&b, ""));
    CHECK_OK(textdiff(a.data, a.len, b.data, b.len, &out));
    apply(a.data, out.data ? out.data : "", &made);
    CHECK_STR(made.data, b.data);
}

TEST(what_it_says_makes_one_of_the_other)
{
    for (unsigned seed = 0; seed < 300; seed++)
        check_round(seed, 1 + seed % 40, 1 + seed % 7);
    check_round(7, 5000, 100000); /* nothing in common: one large replacement */
}
