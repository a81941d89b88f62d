/* network - what a sandbox may reach, and what it tried to.
 *
 * In a spec a network is a word ("none", "open", "agents") or rules, one a line (net/policy.h); NULL is
 * none. Either may be followed by a line "proxy URL" (net/proxy.h). One that has any is given to the broker
 * when the sandbox runs: two sockets of its namespace and the rules. What the broker says of it comes
 * back as entries and sums (ledger.h). Calls block for as long as the keeper takes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/id.h"
#include "core/core.h"
#include "core/sandbox.h"
#include "wire/broker.h"

#define NETWORK_LOG_MAX 512 /* entries kept of one sandbox */
#define NETWORK_TEXT_MAX (64 * 1024)

/* One that has no rules and needs nobody. */
bool network_is_none(const char *network);
/* -EINVAL, invalid_network: what is wrong with it. */
int network_check(const char *network, struct err *err);
/* The proxy that it names, or NULL; *ret_rules bytes of its text come before. */
const char *network_proxy(const char *network, size_t *ret_rules);
/* Its rules; those of a word are the ones that it stands for. Failures as of network_check. */
struct policy;
int network_rules(const char *network, struct policy *ret_policy, struct err *err);

struct network_entry {
    uint64_t number; /* counts up, in one sandbox; what was still open gets another at its end */
    struct broker_record record;
};
struct network_query {
    uint64_t after; /* entries with a number above this */
    size_t limit;
    int wait_ms; /* for the first, if there is none */
};
/* Oldest first; free(*ret_items). Also of one that is gone, for some days. Failures as of
 * sandbox_get. */
int network_log(struct core *core, const char *owner, const char *who,
                const struct network_query *query, struct network_entry **ret_items, size_t *ret_n,
                struct err *err);

struct account;
/* What it carried, ever (account.h): network_account_done soon, for nobody writes meanwhile. Of one that
 * carried nothing it is empty. */
int network_account(struct core *core, const char *owner, const char *who,
                    struct account *ret_account, struct err *err);
void network_account_done(struct core *core, struct account *account);
const char *network_reason(const struct broker_record *record); /* as the API says it */
const char *network_protocol(const struct broker_record *record);
/* What went wrong with what was allowed: an errno's name, or a word of DNS; NULL: nothing. */
const char *network_error(const struct broker_record *record);
/* How to get it through, as far as this daemon can tell; NULL: it passed, or nobody knows. */
#define NETWORK_HINT_SIZE 512
const char *network_hint(const struct broker_record *record, char out[NETWORK_HINT_SIZE]);

/* What the broker said, if it is of this; false: it is not. */
bool network_told(struct core *core, const void *msg, size_t n);
