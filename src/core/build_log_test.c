#include <string.h>

#include "base/check.h"
#include "core/build_log.h"

TEST(output_comes_out_by_lines_whatever_pieces_it_came_in)
{
    struct build_log log = { .n = 0 };
    build_log_step(&log, "1");
    build_log_output(&log, WIRE_STDOUT, "one\ntw", 6);
    build_log_output(&log, WIRE_STDERR, "bad\r\n", 5);
    build_log_output(&log, WIRE_STDOUT, "o\n\nrest", 7);
    build_log_step(&log, "2");
    CHECK_EQ(log.n, 4);
    CHECK_STR(log.lines[0].text, "one");
    CHECK_STR(log.lines[1].text, "bad");
    CHECK_EQ(log.lines[1].level, LOG_LINE_WARN);
    CHECK_STR(log.lines[2].text, "two");
    CHECK_STR(log.lines[3].text, "rest");
    CHECK_STR(log.lines[3].step, "1");
    build_log_done(&log);
}

TEST(a_line_without_an_end_is_cut)
{
    struct build_log log = { .n = 0 };
    static char many[10000];
    memset(many, 'x', sizeof(many));
    build_log_output(&log, WIRE_STDOUT, many, sizeof(many));
    build_log_end(&log);
    CHECK_EQ(log.n, 3);
    CHECK_EQ(strlen(log.lines[0].text), 4096);
    build_log_done(&log);
}

TEST(what_comes_when_it_is_full_is_counted_and_notes_still_have_room)
{
    struct build_log log = { .n = 0 };
    for (int i = 0; i < 10010; i++)
        build_log_output(&log, WIRE_STDOUT, "x\n", 2);
    build_log_note(&log, LOG_LINE_INFO, "a note");
    build_log_end(&log);
    CHECK_EQ(log.n, 10002);
    CHECK_STR(log.lines[10000].text, "a note");
    CHECK(strstr(log.lines[10001].text, "10 lines"));
    build_log_done(&log);
}
