#include "init/file/rig.h"

static uint64_t lines[64], columns[64], offsets[64];
static char texts[64][600];
static size_t n_hits;

/* Every MATCH of a search below the test's directory; the name of its failure. */
static const char *search(const char *text, uint64_t flags, const char *pattern, uint64_t limit)
{
    static char what[64];
    struct rig r;
    rig_ask(&r, WIRE_FILE_SEARCH, "root", rig_path(""));
    rig_text_field(&r, WIRE_T_TEXT, text);
    rig_put(&r, WIRE_T_FLAGS, flags);
    if (pattern)
        rig_text_field(&r, WIRE_T_PATTERN, pattern);
    if (limit)
        rig_put(&r, WIRE_T_LIMIT, limit);
    rig_go(&r);
    n_hits = 0;
    what[0] = '\0';
    while (rig_next(&r) == 0 && r.h.type != WIRE_OK) {
        if (r.h.type == WIRE_ERROR) {
            rig_string(&r, WIRE_T_WHAT, what, sizeof(what));
            break;
        }
        CHECK_EQ(r.h.type, WIRE_MATCH);
        CHECK(n_hits < ARRAY_LEN(lines));
        lines[n_hits] = rig_number(&r, WIRE_T_LINE);
        columns[n_hits] = rig_number(&r, WIRE_T_COLUMN);
        offsets[n_hits] = rig_number(&r, WIRE_T_OFFSET);
        rig_string(&r, WIRE_T_TEXT, texts[n_hits++], sizeof(texts[0]));
    }
    rig_done(&r);
    return what;
}

TEST(hits_are_told_by_line_and_column)
{
    rig_enter();
    rig_file("f", "one two\nthree two two\r\n\nTWO\nlast two");
    CHECK_STR(search("two", 0, NULL, 0), "");
    CHECK_EQ(n_hits, 4);
    static const uint64_t want[][3] = { { 1, 5, 4 }, { 2, 7, 14 }, { 2, 11, 18 }, { 5, 6, 33 } };
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQ(lines[i], want[i][0]);
        CHECK_EQ(columns[i], want[i][1]);
        CHECK_EQ(offsets[i], want[i][2]);
    }
    CHECK_STR(texts[1], "three two two");
    CHECK_STR(search("two", WIRE_F_ICASE, NULL, 0), "");
    CHECK_EQ(n_hits, 5);
    rig_file("g", "caf\xc3\xa9 Stra\xc3\x9f"
                  "e");
    CHECK_STR(search("\xc3\xa9 STRA\xc3\x9f", WIRE_F_ICASE, NULL, 0), "");
    CHECK_EQ(n_hits, 1);
    CHECK_OK(unlink(rig_path("g")));
    CHECK_STR(search("two\nthree", 0, NULL, 0), "");
    CHECK_EQ(n_hits, 1);
    CHECK_STR(search("^(last|t[a-z]+) ", WIRE_F_REGEX, NULL, 0), "");
    CHECK_EQ(n_hits, 2);
    CHECK_EQ(lines[1], 5);
    CHECK_STR(search("two$", WIRE_F_REGEX | WIRE_F_ICASE, NULL, 0), "");
    CHECK_EQ(n_hits, 3);
    CHECK_STR(search("two", 0, NULL, 2), "");
    CHECK_EQ(n_hits, 2);
    CHECK_STR(search("(", WIRE_F_REGEX, NULL, 0), "invalid_pattern");
    CHECK_STR(search("", 0, NULL, 0), "invalid_pattern");
    CHECK_STR(search("x*", WIRE_F_REGEX, NULL, 0), "");
    CHECK(n_hits >= 4); /* at least once a line that has something in it */
    rig_leave();
}

TEST(binaries_and_what_is_not_included_are_left_out)
{
    rig_enter();
    CHECK_OK(mkdir(rig_path("d"), 0755));
    rig_file("d/a.c", "needle");
    rig_file("d/a.h", "needle");
    int fd = open(rig_path("bin"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK_EQ(write(fd, "\0needle", 7), 7);
    (void)close(fd);
    CHECK_OK(mkfifo(rig_path("fifo"), 0644));
    CHECK_STR(search("needle", 0, NULL, 0), "");
    CHECK_EQ(n_hits, 2);
    CHECK_STR(search("needle", 0, "*.c", 0), "");
    CHECK_EQ(n_hits, 1);
    rig_leave();
}

TEST(a_hit_across_the_pieces_of_a_large_file_is_found)
{
    enum { MEGA = 1024 * 1024 };
    rig_enter();
    for (int form = 0; form < 3;
         form++) { /* with lines; one line; a hit in the second piece's line */
        FILE *f = fopen(rig_path("big"), "we");
        CHECK(f != NULL);
        for (int i = 0; i < 3 * MEGA; i++)
            (void)fputc(form != 1 && i % 100 == 99 ? '\n' : 'x', f);
        CHECK_EQ(fseek(f, form == 2 ? 2 * MEGA + 5 : MEGA - 3, SEEK_SET), 0);
        CHECK(fputs("needle", f) >= 0);
        CHECK_EQ(fclose(f), 0);
        CHECK_STR(search("needle", 0, NULL, 0), "");
        CHECK_EQ(n_hits, 1);
        uint64_t at = form == 2 ? 2 * MEGA + 5 : MEGA - 3;
        CHECK_EQ(offsets[0], at);
        CHECK_EQ(lines[0], form == 1 ? 1 : at / 100 + 1);
        CHECK(strstr(texts[0], "needle") != NULL);
    }
    rig_leave();
}

static const char *replace(const char *text, const char *to, uint64_t flags, struct rig *r)
{
    rig_ask(r, WIRE_FILE_REPLACE, "root", rig_path(""));
    rig_text_field(r, WIRE_T_TEXT, text);
    rig_text_field(r, WIRE_T_TO, to);
    rig_put(r, WIRE_T_FLAGS, flags);
    return rig_run(r);
}

TEST(a_replacement_rewrites_what_has_it_and_nothing_else)
{
    struct rig r;
    struct stat before, after;
    rig_enter();
    rig_file("a", "one two two\n");
    rig_file("b", "nothing here\n");
    CHECK_OK(chmod(rig_path("a"), 0751));
    CHECK_OK(chown(rig_path("a"), 1234, 1234));
    CHECK_OK(stat(rig_path("b"), &before));
    CHECK_STR(replace("two", "2", WIRE_F_DRY_RUN, &r), "");
    CHECK_EQ(r.count, 2);
    CHECK_STR(rig_text("a"), "one two two\n");
    CHECK_STR(replace("two", "2", 0, &r), "");
    CHECK_EQ(r.count, 2);
    CHECK_EQ(r.files, 1);
    CHECK_STR(r.seen, "a ");
    CHECK_STR(rig_text("a"), "one 2 2\n");
    CHECK_EQ(rig_mode("a"), 0751);
    CHECK_OK(stat(rig_path("a"), &after));
    CHECK_EQ(after.st_uid, 1234);
    CHECK_OK(stat(rig_path("b"), &after));
    CHECK_EQ(after.st_ino, before.st_ino);
    CHECK_STR(replace("([a-z]+) (2)", "\\2-\\1\\\\", WIRE_F_REGEX, &r), "");
    CHECK_STR(rig_text("a"), "2-one\\ 2\n");
    CHECK_STR(replace("^", "> ", WIRE_F_REGEX, &r), "");
    CHECK_STR(rig_text("a"), "> 2-one\\ 2\n");
    rig_leave();
}
