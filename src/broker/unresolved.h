/* unresolved - the latest names of a sandbox that led nowhere, so that each is told of once.
 *
 * A few places that are used again, the oldest first. Knows nothing of DNS; allocates nothing. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "net/host.h"

#define UNRESOLVED_MAX 8
#define UNRESOLVED_MS 30000 /* a program that still tries after that is told of again */

struct unresolved {
    int64_t since_ms;
    unsigned families; /* the caller's: which were asked for */
    bool told;
    char name[HOST_SIZE];
};

struct unresolveds {
    struct unresolved items[UNRESOLVED_MAX];
};

/* The place of a name; a new one, empty, if it was not there or is of long ago. */
struct unresolved *unresolved_find(struct unresolveds *us, const char *name, int64_t now_ms);
