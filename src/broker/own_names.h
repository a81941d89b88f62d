/* own_names - the names of clients' own that lead to ports of sandboxes, as warrend told them.
 *
 * A copy in memory: a broker that starts anew is told all of them again. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/id.h"

#define OWN_NAMES_BUCKETS 1024

struct broker_name;
struct own_name;

struct own_names {
    struct own_name *buckets[OWN_NAMES_BUCKETS];
    size_t n;
};

/* What warrend said of a name; what makes no sense is left out. */
void own_names_learn(struct own_names *all, const struct broker_name *msg);
/* Host as a client sent it: a port behind it does not count. */
bool own_names_find(const struct own_names *all, const char *host, size_t n, char ret_id[ID_SIZE],
                    unsigned *ret_port);
void own_names_done(struct own_names *all);
