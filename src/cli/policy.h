/* policy - which checkpoints a sandbox takes by itself, as `--checkpoints` says it.
 *
 * "every=10m,command,stop,last=10,for=2d,hourly=24,daily=7", any of these; or "none". */
#pragma once
#include <jansson.h>

#include "base/err.h"

/* Sets the member `checkpoints` of a request's body; -EINVAL names the word that is not understood. */
int policy_put(json_t *body, const char *text, struct err *err);
