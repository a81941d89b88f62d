/* listing - rows in aligned columns.
 *
 * Every cell is outside text until proven otherwise, so each goes through text_line: a
 * sandbox's name cannot break out of its row. Where rows are wider than the terminal, the widest
 * columns of text are cut; the first column, numbers, ids and states stay whole. Prints only when
 * told to. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum column_kind {
    COLUMN_TEXT = false,
    COLUMN_NUMBER = true, /* to the right */
    COLUMN_ID,            /* to be copied */
    COLUMN_STATE,         /* coloured */
};

struct column {
    const char *title;
    enum column_kind kind;
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
/* width: the columns of the terminal; 0: nothing is cut. A table without rows prints only its titles. */
void listing_print(const struct listing *t, FILE *out, size_t width);
