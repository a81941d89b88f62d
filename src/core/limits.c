#include "core/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/ledger.h"
#include "core/private.h"

#define MIB (1024ull * 1024)
#define CONNECTIONS_MAX 1000000u
#define RATE_MBPS_MAX 1000000u /* a terabit */
#define TOTAL_MB_MAX (1ull << 40)

enum { CONNECTIONS, CONNECTIONS_PER_S, RATE_MBPS, TOTAL_MB, KINDS };

static const struct {
    const char *name;
    uint64_t most;
} kinds[KINDS] = {
    [CONNECTIONS] = { "connections", CONNECTIONS_MAX },
    [CONNECTIONS_PER_S] = { "connections_per_s", CONNECTIONS_MAX },
    [RATE_MBPS] = { "rate_mbps", RATE_MBPS_MAX },
    [TOTAL_MB] = { "total_mb", TOTAL_MB_MAX },
};

static uint64_t get(const struct network_limits *l, int kind)
{
    const uint64_t all[KINDS] = { l->connections, l->connections_per_s, l->rate_mbps, l->total_mb };
    return all[kind];
}

static void set(struct network_limits *l, int kind, uint64_t v)
{
    switch (kind) {
    case CONNECTIONS: l->connections = (uint32_t)v; break;
    case CONNECTIONS_PER_S: l->connections_per_s = (uint32_t)v; break;
    case RATE_MBPS: l->rate_mbps = v; break;
    case TOTAL_MB: l->total_mb = v; break;
    default: break;
    }
}

static int parse_one(const char *p, size_t n, struct network_limits *l)
{
    const char *equals = memchr(p, '=', n);
    size_t name_n = equals ? (size_t)(equals - p) : 0;
    for (int i = 0; i < KINDS; i++) {
        if (strlen(kinds[i].name) != name_n || memcmp(kinds[i].name, p, name_n) != 0)
            continue;
        char *end = NULL;
        errno = 0;
        unsigned long long v =
            equals[1] >= '0' && equals[1] <= '9' ? strtoull(equals + 1, &end, 10) : 0;
        if (errno || end != p + n || v > kinds[i].most)
            return -EINVAL;
        set(l, i, v);
        return 0;
    }
    return -EINVAL;
}

int limits_parse(const char *text, struct network_limits *ret_limits, struct err *err)
{
    struct network_limits l = { 0 };
    for (const char *p = text ? text : ""; *p;) {
        p += strspn(p, ", \t");
        size_t n = strcspn(p, ", \t");
        if (n && parse_one(p, n, &l) < 0)
            return err_set(err, EINVAL,
                           "'%.*s' is no limit: connections=N, connections_per_s=N, rate_mbps=N or "
                           "total_mb=N, with commas between",
                           (int)n, p);
        p += n;
    }
    *ret_limits = l;
    return 0;
}

int limits_check(const struct network_limits *limits, const struct network_limits *most,
                 struct err *err)
{
    for (int i = 0; i < KINDS; i++) {
        uint64_t here = most ? get(most, i) : 0;
        uint64_t bound = here ? here : kinds[i].most;
        if (get(limits, i) > bound)
            return err_fail(err, FAIL_INVALID_FIELD,
                            "'network_limits.%s' must be from 1 to %llu here", kinds[i].name,
                            (unsigned long long)bound);
    }
    return 0;
}

struct network_limits limits_apply(const struct network_limits *said,
                                   const struct network_limits *usual,
                                   const struct network_limits *most)
{
    struct network_limits l = { 0 };
    for (int i = 0; i < KINDS; i++) {
        uint64_t v = get(said, i) ? get(said, i) : get(usual, i), bound = get(most, i);
        set(&l, i, bound && (v == 0 || v > bound) ? bound : v);
    }
    return l;
}

json_t *limits_to_json(const struct network_limits *limits)
{
    json_t *o = json_object();
    for (int i = 0; o && i < KINDS; i++)
        if (get(limits, i) &&
            json_object_set_new(o, kinds[i].name, json_integer((json_int_t)get(limits, i))) < 0) {
            json_decref(o);
            return NULL;
        }
    return o;
}

void limits_from_json(const json_t *object, struct network_limits *ret_limits)
{
    for (int i = 0; i < KINDS; i++) {
        const json_t *v = json_object_get(object, kinds[i].name);
        if (json_is_integer(v) && json_integer_value(v) > 0)
            set(ret_limits, i, (uint64_t)json_integer_value(v));
    }
}

/* ---- to the broker ---- */

struct network_limits limits_of(const struct core *core, const struct network_limits *said)
{
    return limits_apply(said, &core->limits, &core->limits_most);
}

int networks_limit(struct core *core, const struct sandbox *s, struct err *err)
{
    struct network_limits l = limits_of(core, &s->spec.network_limits);
    struct broker_limits msg = { .type = BROKER_LIMITS,
                                 .connections = l.connections,
                                 .connections_per_s = l.connections_per_s,
                                 .bytes_per_s = l.rate_mbps * 1000000 / 8,
                                 .bytes = l.total_mb * MIB };
    memcpy(msg.sandbox, s->id, sizeof(msg.sandbox));
    if (msg.bytes)
        msg.spent_bytes = ledger_spent(core, s->id);
    int r = networks_tell(core, &msg, sizeof(msg));
    return r < 0 ? err_set(err, -r, "cannot give the broker the limits of '%s'", s->id) : 0;
}
