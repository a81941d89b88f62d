/* token - a secret that stands for one sandbox and one purpose.
 *
 * Derived from a secret of this daemon's state (HMAC), so nothing is stored for a sandbox, and the
 * same token is right again after a restart. Purposes keep dialects apart: a token for one is
 * worth nothing for another. */
#pragma once
#include <stdbool.h>

#include "core/core.h"

#define TOKEN_SIZE 65 /* 64 hex digits and the NUL */

void token_for(struct core *core, const char *purpose, const char *sandbox, char ret[TOKEN_SIZE]);
/* In constant time. */
bool token_is(struct core *core, const char *purpose, const char *sandbox, const char *text);
