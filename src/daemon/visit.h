/* visit - whether a request from outside may reach a port of a sandbox, and the connection for it.
 *
 * A private sandbox wants a key of its team, a preview token (core/pass.h) or E2B's traffic token; a
 * public one wants nothing, but a token still says who comes. One that sleeps is woken, by those only
 * who may enter. A port that nothing listens on yet is waited for while its sandbox is starting.
 * Blocks for as long as all that takes, which is bounded. */
#pragma once
#include <stdatomic.h>

#include "core/core.h"
#include "front/http/auth.h"
#include "wire/broker.h"

struct visit {
    struct core *core;
    struct auth *guard; /* counts wrong proofs by address */
    atomic_bool stop;   /* no more waiting */
};

/* Fills all of *answer but its type and number. *ret_fd: -1, or the caller's. */
void visit_decide(struct visit *v, const struct broker_ask *ask, struct broker_answer *answer,
                  int *ret_fd);
