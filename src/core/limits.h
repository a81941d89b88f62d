/* limits - how much of the network a sandbox may use: connections at once and in a second, bytes in a
 * second and in all.
 *
 * A spec says some of them, the operator's word stands for the others, and none may be beyond the
 * operator's most. 0 is "not said" in a spec and "without limit" in what applies. They are kept by
 * the broker; here they are only worked out and told. */
#pragma once
#include <jansson.h>
#include <stdint.h>

#include "base/err.h"

struct network_limits {
    uint32_t connections, connections_per_s;
    uint64_t rate_mbps; /* megabits a second, each way */
    uint64_t total_mb;  /* MiB, both ways, while the sandbox exists */
};

/* "connections=N,connections_per_s=N,rate_mbps=N,total_mb=N", any of them; -EINVAL. */
int limits_parse(const char *text, struct network_limits *ret_limits, struct err *err);
/* -EINVAL, invalid_field: one is beyond `most` (NULL: there is none), or beyond sense. */
int limits_check(const struct network_limits *limits, const struct network_limits *most,
                 struct err *err);
/* What applies to one that says `said`. */
struct network_limits limits_apply(const struct network_limits *said,
                                   const struct network_limits *usual,
                                   const struct network_limits *most);
json_t *limits_to_json(const struct network_limits *limits); /* NULL: no memory */
void limits_from_json(const json_t *object, struct network_limits *ret_limits);

struct core;
struct sandbox;
struct network_limits limits_of(const struct core *core, const struct network_limits *said);
/* Tells the broker; -errno. */
int networks_limit(struct core *core, const struct sandbox *s, struct err *err);
