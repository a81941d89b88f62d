#include "broker/line.h"

#include <stddef.h>

void line_join(struct line *l, struct line_place *p)
{
    if (p->taken)
        return;
    *p = (struct line_place){ .prev = l->last, .taken = true };
    *(l->last ? &l->last->next : &l->first) = p;
    l->last = p;
}

void line_leave(struct line *l, struct line_place *p)
{
    if (!p->taken)
        return;
    *(p->prev ? &p->prev->next : &l->first) = p->next;
    *(p->next ? &p->next->prev : &l->last) = p->prev;
    p->taken = false;
}
