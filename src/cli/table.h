/* table - objects of the API as a table: columns, and how one object becomes a row.
 *
 *     static const struct column columns[] = { { "VOLUME", false }, { "AGE", true } };
 *     static void put_row(struct listing *t, const json_t *o) { ... }
 *     static const struct table table = TABLE(columns, put_row);
 *     ...
 *     return table_pages(cli, path, "volumes", &table);
 *
 * Prints on stdout; cells are made harmless by listing. */
#pragma once
#include <jansson.h>

#include "cli/listing.h"

struct cli;

struct table {
    const struct column *columns;
    size_t ncolumns;
    void (*put_row)(struct listing *t, const json_t *o); /* a cell for each column */
};
/* clang-format off */
#define TABLE(columns_, put_row_) { (columns_), ARRAY_LEN(columns_), (put_row_) }
/* clang-format on */

/* A row for each object of the array, or for the first `max` of them. */
void table_print(const struct table *table, const json_t *array, size_t max);
/* All pages of a list (see pages_read): as JSON if that is asked for, else as a table. Returns the
 * exit status. */
int table_pages(struct cli *cli, const char *path, const char *member, const struct table *table);

/* Cells: a member as it is, a number, bytes, and how long ago a moment was. */
void cell_text(struct listing *t, const json_t *o, const char *name);
void cell_int(struct listing *t, const json_t *o, const char *name);
void cell_size(struct listing *t, const json_t *o, const char *name);
void cell_age(struct listing *t, const json_t *o, const char *name);
/* A listing that is complete: printed and done with. */
void table_finish(struct listing *t);
