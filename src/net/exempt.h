/* exempt - places that are reached another way than the rest: hosts, "*." and a host, ranges.
 *
 * A list with commas, as an operator writes it. Pure functions. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "net/address.h"
#include "net/host.h"

#define EXEMPT_MAX 64

struct exempt {
    struct range ranges[EXEMPT_MAX];
    char *hosts[EXEMPT_MAX]; /* patterns as in host.h */
    size_t n_ranges, n_hosts;
};

/* -EINVAL: which part is neither; -E2BIG. */
int exempt_parse(const char *list, struct exempt *ret_exempt, struct err *err);
void exempt_done(struct exempt *e);
/* name: "" where there is none that is known to belong to the address. */
bool exempt_has(const struct exempt *e, const struct address *to, const char *name);
