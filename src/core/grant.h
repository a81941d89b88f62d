/* grant - which secrets the requests of a sandbox may carry, and their values for the broker.
 *
 * In a spec bindings are lines (net/binding.h); NULL is none. They name secrets of the sandbox's
 * owner by name: what a name stands for is looked up whenever the broker is told, so that a new
 * value is in force at once and a removed one is gone. A value passes through this daemon's memory
 * to the broker and is wiped; nothing else here sees it. */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "core/core.h"

bool grant_is_none(const char *bindings);
/* Its programs meet certificates that the sandbox's own authority signed. */
bool grant_intercepts(const char *bindings);
/* -EINVAL, invalid_binding: what is wrong; without a core the secrets are not looked at. With one
 * also -ENOENT, secret_not_found. */
int grant_check(struct core *core, const char *owner, const char *bindings, struct err *err);
/* A file in memory with the lines and values, for the broker: its descriptor. */
int grant_pack(struct core *core, const char *owner, const char *bindings, struct err *err);
/* Does any line name this secret, by name or id? */
bool grant_names(const char *bindings, const char *secret_name, const char *secret_id);
