#include "front/http/request.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "front/http/conn.h"
#include "front/http/fields.h"

const char *request_header(const struct request *req, const char *name)
{
    return conn_header(req->con, name);
}

int request_headers_with(const struct request *req, const char *prefix, request_header_fn fn,
                         void *arg)
{
    const struct head *h = conn_head(req->con);
    size_t n = strlen(prefix);
    for (size_t i = 0; h && i < h->nfields; i++) {
        const char *name = h->fields[i].name.p;
        int r = strncasecmp(name, prefix, n) == 0 ? fn(arg, name + n, h->fields[i].value.p) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

bool request_accepts(const struct request *req, const char *type)
{
    const char *accept = request_header(req, "Accept");
    return accept && strcasestr(accept, type);
}

static bool listed(const char *const *names, const char *name, bool *ret_again)
{
    *ret_again = false;
    for (; *names; names++) {
        size_t n = strlen(*names);
        if (strcmp(*names, name) == 0)
            return true;
        if (n > 1 && (*names)[n - 1] == '+' && strlen(name) == n - 1 &&
            memcmp(*names, name, n - 1) == 0)
            return *ret_again = true;
        if (n > 2 && strcmp(*names + n - 2, ".*") == 0 && strncmp(*names, name, n - 1) == 0)
            return true;
    }
    return false;
}

int request_params_known(const struct request *req, const char *const *names, struct err *err)
{
    for (size_t i = 0; i < req->uri.nparams; i++) {
        const char *name = req->uri.params[i].name;
        bool again;
        if (!listed(names, name, &again))
            return err_fail(err, FAIL_INVALID_QUERY, "there is no parameter '%.64s' here", name);
        for (size_t k = 0; k < i && !again; k++)
            if (strcmp(req->uri.params[k].name, name) == 0)
                return err_fail(err, FAIL_INVALID_QUERY, "'%.64s' is given twice", name);
    }
    return 0;
}

int request_param_u64(const struct request *req, const char *name, uint64_t min, uint64_t max,
                      uint64_t *ret_v, struct err *err)
{
    const char *text = uri_param(&req->uri, name);
    if (!text)
        return 0;
    char *end = NULL;
    errno = 0;
    unsigned long long v = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    if (!end || *end || errno || v < min || v > max)
        return err_fail(err, FAIL_INVALID_QUERY, "'%s' must be a whole number from %llu to %llu",
                        name, (unsigned long long)min, (unsigned long long)max);
    *ret_v = v;
    return 1;
}

int request_param_bool(const struct request *req, const char *name, bool *ret_v, struct err *err)
{
    const char *text = uri_param(&req->uri, name);
    if (!text)
        return 0;
    bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    if (!yes && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
        return err_fail(err, FAIL_INVALID_QUERY, "'%s' must be true or false", name);
    *ret_v = yes;
    return 1;
}

int request_json(const struct request *req, json_t **ret_object, struct err *err)
{
    return fields_parse(req->body.data, req->body.len, ret_object, err);
}

int request_fields(const struct request *req, const struct field *fields, size_t n, void *target,
                   uint32_t *ret_seen, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    uint32_t seen;
    int r = request_json(req, &object, err);
    return r < 0 ? r : fields_decode(object, fields, n, target, ret_seen ? ret_seen : &seen, err);
}
