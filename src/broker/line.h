/* line - who waits, in order: the first has waited longest. Embedded in what it is for. Pure. */
#pragma once
#include <stdbool.h>

struct line_place {
    struct line_place *prev, *next;
    bool taken;
};

struct line {
    struct line_place *first, *last;
};

void line_join(struct line *l,
               struct line_place *p); /* behind all others; once: it keeps its place */
void line_leave(struct line *l, struct line_place *p); /* may not wait at all */
