/* Which secrets a request took along: told once its server is known to be the right one and has it. */
#include "broker/credential.h"
#include "broker/tap_private.h"

_Static_assert(BINDINGS_MAX <= 64, "there is a bit for each");

void errand_note_uses(struct tap *t, const struct credential *c)
{
    t->carries = 0;
    for (size_t i = 0; i < c->n_fits; i++)
        if (c->fits[i]->secret && credential_puts(c, i))
            t->carries |= (uint64_t)1 << (c->fits[i] - t->bound->bindings.items);
}

void errand_tell_uses(struct tap *t)
{
    if (!reach_is_there(t->up) || !t->carries)
        return;
    for (size_t i = 0; i < t->bound->bindings.n; i++) {
        const struct binding *b = &t->bound->bindings.items[i];
        if (t->carries >> i & 1)
            egress_used(t->net, b->secret, b->host, b->port);
    }
    t->carries = 0;
}
