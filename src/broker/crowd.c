#include "broker/crowd.h"

#include "base/hash.h"

void crowd_init(struct crowd *c, unsigned most)
{
    *c = (struct crowd){ .most = most };
}

static unsigned place_of(const char *sandbox)
{
    return (unsigned)(hash_text(sandbox) % CROWD_COUNTS);
}

unsigned crowd_enter(struct crowd *c, const char *sandbox)
{
    unsigned at = place_of(sandbox);
    if (c->counts[at] >= c->most - c->n)
        return 0;
    c->counts[at]++;
    c->n++;
    return at + 1;
}

void crowd_leave(struct crowd *c, unsigned ticket)
{
    if (ticket == 0)
        return;
    c->counts[ticket - 1]--;
    c->n--;
}
