/* network - what a sandbox may reach, and what it tried to.
 *
 * In a spec a network is a word ("none", "open", "agents") or rules, one a line (net/policy.h); NULL is
 * none. One that has any is given to the broker when the sandbox runs: two sockets of its
 * namespace and the rules. What the broker says of it comes back as entries, the latest of which are kept
 * in memory. Calls block for as long as the keeper takes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/id.h"
#include "core/core.h"
#include "core/sandbox.h"
#include "wire/broker.h"

#define NETWORK_LOG_MAX 256 /* entries kept of one sandbox */
#define NETWORK_TEXT_MAX (64 * 1024)

/* One that has no rules and needs nobody. */
bool network_is_none(const char *network);
/* -EINVAL, invalid_network: what is wrong with it. */
int network_check(const char *network, struct err *err);

/* The entries of a sandbox that came after number `after`, oldest first; free(*ret_items). Failures
 * as of sandbox_get. */
struct network_entry {
    uint64_t number; /* counts up, in one sandbox */
    struct broker_record record;
};
int network_log(struct core *core, const char *owner, const char *who, uint64_t after,
                struct network_entry **ret_items, size_t *ret_n, struct err *err);

/* What the broker said, if it is of this; false: it is not. */
bool network_told(struct core *core, const void *msg, size_t n);
