/* request_fuzz - what a stranger can send, up to the point where a handler would act on it: the
 * request target, its route, and the JSON bodies. The first line of the input is the target, the
 * rest the body. */
#include <stdint.h>
#include <string.h>

#include "core/spec.h"
#include "front/http/fields.h"
#include "front/native/native.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_bodies(struct request *req)
{
    struct err err = ERR_INIT;

    for (int wait = 0; wait < 2; wait++) {
        struct native_command cmd = { 0 };
        if (native_command_read(req, wait, &cmd, &err) >= 0 && !cmd.spec.argv[0])
            __builtin_trap(); /* a command always has a program */
        native_command_done(&cmd);
    }
    for (int update = 0; update < 2; update++) {
        struct sandbox_spec spec = { 0 };
        unsigned changes = 0;
        if (!update)
            sandbox_spec_init(&spec);
        if (native_spec_read(req, &spec, update ? &changes : NULL, &err) >= 0 &&
            spec_check(&spec, &err) >= 0 && spec.name && !name_valid(spec.name))
            __builtin_trap();
        sandbox_spec_done(&spec);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *line = memchr(text, '\n', size);
    size_t n = line ? (size_t)(line - text) : size;
    struct request req = { .fd = -1 };
    struct err err = ERR_INIT;
    const struct route *route;
    char allow[ROUTE_ALLOW_MAX];

    if (uri_parse(text, n, &req.uri, &err) >= 0) {
        static const char *const methods[] = { "GET", "POST", "DELETE", "HEAD", "BREW" };
        for (size_t i = 0; i < ARRAY_LEN(methods); i++)
            if (route_find(native_dialect.routes, native_dialect.nroutes, methods[i], &req.uri,
                           &route, req.args, allow) == ROUTE_FOUND &&
                !route->handle)
                __builtin_trap();
        uint64_t v;
        bool b;
        (void)request_param_u64(&req, "since", 0, INT64_MAX, &v, &err);
        (void)request_param_bool(&req, "follow", &b, &err);
        uri_done(&req.uri);
    }
    if (line) {
        req.body.max = REQUEST_JSON_MAX;
        if (buf_append(&req.body, line + 1, size - n - 1) >= 0)
            read_bodies(&req);
        buf_done(&req.body);
    }
    return 0;
}
