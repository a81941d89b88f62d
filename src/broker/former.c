#include "broker/former.h"

#include <string.h>

static void keep(struct former *f, struct bound *old)
{
    bound_unref(f->items[FORMER_MAX - 1]);
    memmove(&f->items[1], &f->items[0], (FORMER_MAX - 1) * sizeof(f->items[0]));
    f->items[0] = bound_ref(old);
}

void former_follow(struct former *f, struct bound *old, struct bound *fresh)
{
    if (old && !bound_knows(fresh, old))
        keep(f, old);
    for (size_t i = 0; fresh && i < FORMER_MAX && f->items[i]; i++)
        if (bound_hide(fresh, f->items[i]) < 0)
            return;
}

void former_done(struct former *f)
{
    for (size_t i = 0; i < FORMER_MAX; i++)
        bound_unref(f->items[i]);
    *f = (struct former){ 0 };
}
