/* envp - the environment a command is born with: what the caller gave, and what every login has.
 *
 * Pure: strings in, one block out. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "init/account.h"

#define ENVP_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* given: n strings "NAME=value", each with a name; the last one of a name wins. *ret_envp is one
 * allocation, NULL-terminated; it borrows the given strings. */
int envp_build(char *const *given, size_t n, const struct account *who, bool terminal,
               char ***ret_envp);
const char *envp_get(char *const *envp, const char *name); /* NULL when it is not there */
