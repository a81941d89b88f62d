/* PUT /sandboxes/{id}/network. A sandbox made through this interface has loopback alone: what asks for just that is so already,
 * and what asks for more is refused in words. */
#include <errno.h>
#include <string.h>

#include "front/e2b/e2b.h"

bool e2b_is_empty(const json_t *v)
{
    return !v || json_is_null(v) || (json_is_object(v) && json_object_size(v) == 0) ||
           (json_is_array(v) && json_array_size(v) == 0);
}

static bool denies_all(const json_t *object)
{
    const json_t *deny = json_object_get(object, "denyOut"), *one;
    size_t i;
    if (json_is_false(json_object_get(object, "allow_internet_access")))
        return true;
    json_array_foreach(deny, i, one)
    {
        const char *text = json_string_value(one);
        if (text && strcmp(text, "0.0.0.0/0") == 0)
            return true;
    }
    return false;
}

int e2b_sandbox_network(struct request *req, struct err *err)
{
    static const char *const rules[] = { "allowOut", "rules", "egressProxy" };
    _cleanup_json_ json_t *object = NULL;
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    int r = request_json(req, &object, err);
    if (r < 0)
        return r;
    r = sandbox_get(req->core, req->owner, req->args[0], &s, err);
    if (r < 0)
        return e2b_failed(err, r, req->args[0]);
    if (s.state != SANDBOX_RUNNING)
        return err_name(err, EBUSY, "sandbox_not_running", "sandbox '%s' is paused", s.id);
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (!e2b_is_empty(json_object_get(object, rules[i])))
            return err_name(
                err, ENOTSUP, "not_supported",
                "'%s' is not supported by this server: it gives sandboxes that are made "
                "through E2B's interface no network but their own",
                rules[i]);
    if (!denies_all(object))
        return err_name(err, ENOTSUP, "not_supported",
                        "this server gives E2B's sandboxes no network yet: only "
                        "allow_internet_access false, or a denyOut of 0.0.0.0/0, can be set");
    return reply_empty(req);
}
