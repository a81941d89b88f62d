#include "cli/listing.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/cleanup.h"

static const struct column columns[] = { { "ID", false }, { "MEM", true }, { "NAME", false } };

static char *printed(const char *const *cells, size_t n, size_t width)
{
    struct listing t;
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    listing_init(&t, columns, 3);
    for (size_t i = 0; i < n; i++)
        listing_text(&t, cells[i]);
    listing_print(&t, f, width);
    listing_done(&t);
    (void)fclose(f);
    return text;
}

TEST(columns_are_as_wide_as_their_widest_cell)
{
    static const char *const cells[] = { "a", "1", "x", "bbbb", "1000", NULL };
    _cleanup_free_ char *text = printed(cells, 6, 0);
    CHECK_STR(text, "ID     MEM  NAME\n"
                    "a        1  x\n"
                    "bbbb  1000  -\n");
}

TEST(a_cell_cannot_break_out_of_its_row)
{
    static const char *const cells[] = { "a\nb", "1", "\x1b[2J" };
    _cleanup_free_ char *text = printed(cells, 3, 0);
    CHECK_STR(text, "ID    MEM  NAME\n"
                    "a\\nb    1  ^[[2J\n");
}

TEST(the_widest_text_is_cut_to_the_width)
{
    static const char *const cells[] = { "a", "1", "caf\xc3\xa9 caf\xc3\xa9 caf\xc3\xa9" };
    _cleanup_free_ char *text = printed(cells, 3, 19);
    CHECK_STR(text, "ID  MEM  NAME\n"
                    "a     1  caf\xc3\xa9 ca...\n");
}

static char *printed_wide(size_t width)
{
    static const struct column wide[] = { { "IMAGE", COLUMN_TEXT },   { "COMMENT", COLUMN_TEXT },
                                          { "ID", COLUMN_ID },        { "STATE", COLUMN_STATE },
                                          { "COMMAND", COLUMN_TEXT }, { "SIZE", COLUMN_NUMBER } };
    static const char *const cells[] = { "a-long-image-name", "twenty letters of it",
                                         "0123456789abcdef",  "running",
                                         "sleep infinity",    "1000000000" };
    struct listing t;
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    listing_init(&t, wide, ARRAY_LEN(wide));
    for (size_t i = 0; i < ARRAY_LEN(cells); i++)
        listing_text(&t, cells[i]);
    listing_print(&t, f, width);
    listing_done(&t);
    (void)fclose(f);
    return text;
}

TEST(names_ids_states_and_numbers_stay_whole)
{
    _cleanup_free_ char *cut = printed_wide(80), *least = printed_wide(10),
                        *whole = printed_wide(0);
    CHECK(strstr(
        cut, "a-long-image-name  twenty ...  0123456789abcdef  running  sleep i...  1000000000\n"));
    CHECK(strstr(least,
                 "a-long-image-name  twent...  0123456789abcdef  running  sleep...  1000000000\n"));
    CHECK(strstr(whole, "twenty letters of it  0123456789abcdef  running  sleep infinity "));
}

TEST(a_table_without_rows_shows_its_titles)
{
    _cleanup_free_ char *text = printed(NULL, 0, 0);
    CHECK_STR(text, "ID  MEM  NAME\n");
}
