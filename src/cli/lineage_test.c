#include "cli/lineage.h"

#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/cleanup.h"
#include "cli/object.h"

/* Rows as "stem id|" from "id<parent id<parent …". */
static void drawn(const char *pairs, struct buf *out)
{
    json_t *list = json_array();
    while (*pairs) {
        size_t n = strcspn(pairs, " ");
        (void)json_array_append_new(
            list, json_pack("{s:s%, s:s%}", "id", pairs, (size_t)1, "parent", pairs + 2, n - 2));
        pairs += n + (pairs[n] == ' ');
    }
    size_t n = json_array_size(list);
    struct lineage_row *rows = lineage_draw(list);
    for (size_t i = 0; i < n; i++)
        CHECK_OK(buf_printf(out, "%s%s|", rows[i].stem, member_text(rows[i].checkpoint, "id")));
    lineage_free(rows, n);
    json_decref(list);
}

#define CHECK_DRAWN(pairs_, want_)                                 \
    do {                                                           \
        _cleanup_(buf_done) struct buf text_ = BUF_INIT(1u << 16); \
        drawn(pairs_, &text_);                                     \
        CHECK_STR(text_.data ? text_.data : "", want_);            \
    } while (0)

TEST(a_row_of_checkpoints_is_a_straight_line)
{
    CHECK_DRAWN("", "");
    CHECK_DRAWN("a<", "● a|");
    CHECK_DRAWN("a< b<a c<b", "● a|│ b|│ c|");
}

TEST(where_ways_part_each_begins_with_a_dot)
{
    CHECK_DRAWN("a< b<a c<b d<a e<d f<", "● a|├─● b|│ │ c|└─● d|  │ e|● f|");
    CHECK_DRAWN("a< b<a c<a d<b e<b", "● a|├─● b|│ ├─● d|│ └─● e|└─● c|");
}

TEST(what_has_no_parent_here_is_a_root_and_a_ring_ends)
{
    CHECK_DRAWN("b<x a<b", "● b|│ a|");
    CHECK_DRAWN("a<b b<a", "● a|│ b|");
    CHECK_DRAWN("a<a", "● a|");
}
