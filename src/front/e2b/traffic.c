/* Who may reach a sandbox's ports from outside, and what its servers are told: the part of E2B's
 * `network` that is about coming in. */
#include <errno.h>
#include <string.h>

#include "core/port.h"
#include "core/token.h"
#include "front/e2b/e2b.h"

#define HOST_MAX 200

bool e2b_is_private(const struct sandbox *s)
{
    return s->spec.preview == PREVIEW_PRIVATE;
}

/* A host, which may hold "${PORT}". */
static bool is_host(const char *text)
{
    size_t n = strlen(text);
    return n > 0 && n <= HOST_MAX &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-:[]${}") ==
               n;
}

int e2b_read_traffic(const json_t *network, struct sandbox_spec *spec, struct err *err)
{
    const json_t *public = json_object_get(network, "allowPublicTraffic");
    const json_t *mask = json_object_get(network, "maskRequestHost");
    if (public && !json_is_boolean(public) && !json_is_null(public))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'network.allowPublicTraffic' must be true or false");
    if (json_is_boolean(public))
        spec->preview = json_is_true(public) ? PREVIEW_PUBLIC : PREVIEW_PRIVATE;
    if (!mask || json_is_null(mask))
        return 0;
    if (!json_is_string(mask) || !is_host(json_string_value(mask)))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'network.maskRequestHost' must be a host, such as localhost:${PORT}");
    return pairs_add(&spec->notes, PORT_HOST_NOTE, json_string_value(mask)) < 0
               ? err_set(err, ENOMEM, "cannot allocate a sandbox")
               : 0;
}

void e2b_put_traffic(struct jout *j, struct request *req, const struct sandbox *s)
{
    char token[TOKEN_SIZE];
    if (e2b_is_private(s)) {
        token_for(req->core, PORT_TOKEN, s->id, token);
        jout_str(j, "trafficAccessToken", token);
    }
    if (req->preview_domain)
        jout_str(j, "domain", req->preview_domain);
    else
        jout_null(j, "domain");
}

void e2b_put_access(struct jout *j, const struct sandbox *s)
{
    const char *mask = pairs_get(&s->spec.notes, PORT_HOST_NOTE);
    jout_bool(j, "allowPublicTraffic", !e2b_is_private(s));
    if (mask)
        jout_str(j, "maskRequestHost", mask);
}
