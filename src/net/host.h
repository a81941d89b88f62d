/* host - names of hosts: one spelling for each, and patterns that match whole labels.
 *
 * Whatever a client wrote (capitals, a dot at the end) is brought to one form before anything is
 * compared; what has no such form is refused, an address written as a name among it. Pure functions. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define HOST_SIZE 254 /* 253 characters, DNS's most, and the NUL */

/* Lower case, no dot at the end. -EINVAL: not a name that can be looked up. */
int host_canon(const char *p, size_t n, char out[HOST_SIZE]);
/* The same for a pattern: a name, or "*." and a name of at least two labels. */
int host_pattern(const char *p, size_t n, char out[HOST_SIZE]);
/* Both in canonical form. "*.a.test" is every name below a.test at any depth, and not a.test. */
bool host_matches(const char *pattern, const char *name);
