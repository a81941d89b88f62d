/* netlog - the latest attempts of one sandbox to reach something: a ring of bounded length.
 *
 * Gone with the sandbox and the daemon. The caller locks. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "core/network.h"

struct netlog {
    struct network_entry *items; /* NULL until there is one */
    size_t room;
    uint64_t count; /* all that ever came: the number of the latest */
};

void netlog_add(struct netlog *l,
                const struct broker_record *rec); /* without memory it is dropped */
/* Those behind `after`, oldest first; -ENOMEM. */
int netlog_copy(const struct netlog *l, uint64_t after, struct network_entry **ret_items,
                size_t *ret_n);
void netlog_done(struct netlog *l);
