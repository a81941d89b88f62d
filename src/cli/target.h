/* target - which daemon a command talks to, and with which key.
 *
 * Options of the command line come first, then variables (WARREN_URL, WARREN_SOCKET, WARREN_RUN,
 * WARREN_API_KEY), then a context (context.h: WARREN_CONTEXT, else the current one), and at last the
 * socket of this machine's daemon. A context's key goes to its own address alone. */
#pragma once
#include "cli/client.h"
#include "cli/context.h"

struct cli;

struct target {
    struct client_config config; /* borrows from the rest, and from the environment */
    char *socket;
    struct contexts *contexts;
};
#define TARGET_INIT      \
    {                    \
        .contexts = NULL \
    }

int target_find(const struct cli *cli, struct target *ret_target, struct err *err);
void target_done(struct target *t);
