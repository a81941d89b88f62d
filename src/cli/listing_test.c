#include "cli/listing.h"

#include <stdlib.h>

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

TEST(the_last_column_is_cut_to_the_width)
{
    static const char *const cells[] = { "a", "1", "caf\xc3\xa9 caf\xc3\xa9 caf\xc3\xa9" };
    _cleanup_free_ char *text = printed(cells, 3, 19);
    CHECK_STR(text, "ID  MEM  NAME\n"
                    "a     1  caf\xc3\xa9 ca...\n");
}

TEST(a_table_without_rows_shows_its_titles)
{
    _cleanup_free_ char *text = printed(NULL, 0, 0);
    CHECK_STR(text, "ID  MEM  NAME\n");
}
