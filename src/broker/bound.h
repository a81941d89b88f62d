/* bound - the bindings of one sandbox as the broker has them: with the values, and what hides them.
 *
 * Never changed: new bindings are a new one, and a request that is under way keeps the one it was begun
 * with. The values are wiped with the last who has it. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "net/binding.h"
#include "net/redact.h"

#define BOUND_VALUE_MAX (REDACT_WORD_MAX / 3) /* in a query each byte may be three */

struct bound {
    unsigned refs;
    struct bindings bindings;
    struct redact_words *words; /* every value that may be sent to somebody */
};

/* As net/binding.h packs them. -EINVAL, -E2BIG: nothing may go out with these. */
int bound_new(const char *packed, size_t n, struct bound **ret_bound, struct err *err);
struct bound *bound_ref(struct bound *b); /* NULL stays NULL */
void bound_unref(struct bound *b);
DEFINE_FREEP(struct bound *, bound_unref)

/* Does anything with a secret go to this host? Then its answers may have it. */
bool bound_sends(const struct bound *b, const char *host);
/* Does it carry all that `old` does? */
bool bound_knows(const struct bound *b, const struct bound *old);
/* Hides in its answers what `old` carries, too. -E2BIG: not all of it; -ENOMEM. */
int bound_hide(struct bound *b, const struct bound *old);
/* For the log: the secret's name, or the binding's. */
const char *bound_label(const struct binding *b);
/* There is still a binding like this one. */
bool bound_has(const struct bound *b, const char *label, const char *host);
