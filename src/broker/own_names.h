/* plates - the names of clients' own that lead to ports of sandboxes, as warrend told them.
 *
 * A copy in memory: a broker that starts anew is told all of them again. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/id.h"

#define PLATES_BUCKETS 1024

struct broker_name;
struct plate;

struct plates {
    struct plate *buckets[PLATES_BUCKETS];
    size_t n;
};

/* What warrend said of a name; what makes no sense is left out. */
void plates_learn(struct plates *all, const struct broker_name *msg);
/* Host as a client sent it: a port behind it does not count. */
bool plates_find(const struct plates *all, const char *host, size_t n, char ret_id[ID_SIZE],
                 unsigned *ret_port);
void plates_done(struct plates *all);
