/* How much a sandbox's network may carry, in JSON. */
#include <errno.h>

#include "core/limits.h"
#include "core/sandbox.h"
#include "front/http/fields.h"
#include "front/native/native.h"

#define ROW(member_, name_, ...) FIELD(struct network_limits, member_, name_, __VA_ARGS__)
static const struct field fields[] = {
    ROW(connections, "connections", as_u32, .min = 1, .max = 1000000, .null_ok = true),
    ROW(connections_per_s, "connections_per_s", as_u32, .min = 1, .max = 1000000, .null_ok = true),
    ROW(rate_mbps, "rate_mbps", as_u64, .min = 1, .max = 1000000, .null_ok = true),
    ROW(total_mb, "total_mb", as_u64, .min = 1, .max = 1ull << 40, .null_ok = true),
};

/* All of them at once: what is not said is the operator's to say. */
int native_as_network_limits(const json_t *v, const struct field *f, void *at, struct err *err)
{
    struct network_limits l = { 0 };
    uint32_t seen;
    if (json_is_null(v)) {
        *(struct network_limits *)at = l;
        return 0;
    }
    if (!json_is_object(v))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'%s' must be an object with connections, connections_per_s, rate_mbps and "
                        "total_mb, or some of them",
                        f->name);
    int r = fields_decode(v, fields, ARRAY_LEN(fields), &l, &seen, err);
    if (r >= 0)
        *(struct network_limits *)at = l;
    return r;
}

static void put(struct jout *j, const char *key, uint64_t v)
{
    if (v)
        jout_uint(j, key, v);
    else
        jout_null(j, key);
}

void native_put_network_limits(struct jout *j, const struct sandbox_spec *spec)
{
    const struct network_limits *l = &spec->network_limits;
    jout_open(j, "network_limits", '{');
    put(j, "connections", l->connections);
    put(j, "connections_per_s", l->connections_per_s);
    put(j, "rate_mbps", l->rate_mbps);
    put(j, "total_mb", l->total_mb);
    jout_close(j, '}');
}
