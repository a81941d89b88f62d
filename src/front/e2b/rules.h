/* rules - headers for outgoing requests, in E2B's words, as bindings of the sandbox.
 *
 * `rules` names hosts and the headers that requests to them carry; "${e2b.secrets.NAME}" in one is a
 * secret that never enters the sandbox. A rule opens nothing: where all but some names is denied, it is
 * kept for those of its hosts that are allowed. Pure but for memory. */
#pragma once
#include <jansson.h>

#include "base/err.h"
#include "base/json.h"
#include "net/policy.h"

/* *ret_bindings: their lines; NULL: none. */
int rules_read(const json_t *rules, const struct policy *policy, char **ret_bindings,
               struct err *err);
/* "rules", of those bindings that say so much. */
void rules_put(struct jout *j, const char *bindings);
