/* trust - what makes the programs inside believe their sandbox's own authority.
 *
 * Its certificate in the places where they look, written by warren-init, and variables for those
 * that look nowhere. Blocks for as long as the sandbox takes, at most some seconds. */
#pragma once
#include <stddef.h>

#include "core/core.h"

#define TRUST_BUNDLE "/etc/ssl/certs/ca-certificates.crt"
#define TRUST_CERT "/usr/local/share/ca-certificates/warren.crt"

/* A failure is logged: it is the sandbox's own. */
void trust_install(struct core *core, const char *id);

struct trust_variable {
    const char *name, *value;
};
const struct trust_variable *trust_variables(size_t *ret_n);
