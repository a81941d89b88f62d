/* former - what a sandbox's bindings carried before they were changed, so that it stays hidden.
 *
 * A server may know a value long after it was replaced, and say it. The last few bindings are kept, in the
 * broker's memory alone and for as long as the sandbox has a network here; a new broker knows none. */
#pragma once
#include "broker/bound.h"

#define FORMER_MAX 4

struct former {
    struct bound *items[FORMER_MAX]; /* the newest first; NULL: no more */
};

/* `old` is followed by `fresh`, whose answers no stream has begun to read; either may be NULL. From now on
 * fresh hides what old and those before it carried, as far as there is room for it. */
void former_follow(struct former *f, struct bound *old, struct bound *fresh);
void former_done(struct former *f);
