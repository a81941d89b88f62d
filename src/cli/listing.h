/* listing - rows in aligned columns.
 *
 * Every cell is outside text until proven otherwise, so each goes through text_line: a
 * sandbox's name cannot break out of its row. The last column may be cut to the terminal's
 * width. Prints only when told to. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct column {
    const char *title;
    bool right; /* numbers */
};

struct listing {
    const struct column *columns;
    size_t ncolumns;
    char **cells; /* row by row */
    size_t n, cap;
};

void listing_init(struct listing *t, const struct column *columns, size_t ncolumns);
void listing_done(struct listing *t);
void listing_text(struct listing *t, const char *text); /* the next cell; NULL or "" shows as "-" */
void listing_int(struct listing *t, int64_t n);
/* width: 0, or where to cut the last column. A table without rows prints only its titles. */
void listing_print(const struct listing *t, FILE *out, size_t width);
