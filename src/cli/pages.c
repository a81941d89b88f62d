#include "cli/pages.h"

#include "cli/commands.h"
#include "cli/object.h"
#include "cli/xmem.h"

int pages_read(struct cli *cli, const char *path, const char *member, json_t **ret_list,
               struct err *err)
{
    _cleanup_json_ json_t *all = json_array();
    _cleanup_free_ char *cursor = NULL;
    do {
        _cleanup_free_ char *next_path = api_query(xstrdup(path), "limit", "1000");
        _cleanup_json_ json_t *page = NULL;
        if (cursor)
            next_path = api_query(next_path, "cursor", cursor);
        int r = cli_call(cli, "GET", next_path, NULL, &page, err);
        if (r < 0)
            return r;
        (void)json_array_extend(all, json_object_get(page, member));
        const char *next = member_text(page, "next_cursor");
        free(cursor);
        cursor = *next ? xstrdup(next) : NULL;
    } while (cursor);
    *ret_list = take_ptr(all);
    return 0;
}
