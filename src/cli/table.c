#include "cli/table.h"

#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/object.h"
#include "cli/pages.h"
#include "cli/term.h"
#include "cli/units.h"

void table_finish(struct listing *t)
{
    listing_print(t, stdout, term_width(STDOUT_FILENO));
    listing_done(t);
}

void table_print(const struct table *table, const json_t *array, size_t max)
{
    struct listing t;
    listing_init(&t, table->columns, table->ncolumns);
    for (size_t i = 0; i < json_array_size(array) && i < max; i++)
        table->put_row(&t, json_array_get(array, i));
    table_finish(&t);
}

int table_pages(struct cli *cli, const char *path, const char *member, const struct table *table)
{
    _cleanup_json_ json_t *list = NULL;
    struct err err = ERR_INIT;
    if (pages_read(cli, path, member, &list, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        cli_print_json(list);
    else
        table_print(table, list, SIZE_MAX);
    return 0;
}

void cell_text(struct listing *t, const json_t *o, const char *name)
{
    listing_text(t, member_text(o, name));
}

void cell_int(struct listing *t, const json_t *o, const char *name)
{
    listing_int(t, member_int(o, name));
}

void cell_size(struct listing *t, const json_t *o, const char *name)
{
    char text[UNIT_TEXT_MAX];
    listing_text(t, size_text(member_int(o, name), text));
}

void cell_age(struct listing *t, const json_t *o, const char *name)
{
    char text[UNIT_TEXT_MAX];
    int64_t at = member_moment(o, name);
    listing_text(t, at ? duration_text(clock_now_ms() - at, text) : NULL);
}
