#include "front/native/native.h"

/* clang-format off */
const struct route native_routes[] = {
    { "POST",   "/v1/sandboxes",            AUTH_KEY, BODY_JSON, native_sandbox_create, NULL },
    { "GET",    "/v1/sandboxes",            AUTH_KEY, BODY_NONE, native_sandbox_list,   NULL },
    { "GET",    "/v1/sandboxes/{id}",       AUTH_KEY, BODY_NONE, native_sandbox_get,    NULL },
    { "PATCH",  "/v1/sandboxes/{id}",       AUTH_KEY, BODY_JSON, native_sandbox_update, NULL },
    { "DELETE", "/v1/sandboxes/{id}",       AUTH_KEY, BODY_NONE, native_sandbox_delete, NULL },
    { "POST",   "/v1/sandboxes/{id}/stop",  AUTH_KEY, BODY_NONE, native_sandbox_stop,   NULL },
    { "POST",   "/v1/sandboxes/{id}/start", AUTH_KEY, BODY_NONE, native_sandbox_start,  NULL },
    { "GET",    "/v1/sandboxes/{id}/usage", AUTH_KEY, BODY_NONE, native_sandbox_usage,  NULL },

    { "POST",   "/v1/sandboxes/{id}/exec",                 AUTH_KEY, BODY_JSON, native_exec,           NULL },
    { "POST",   "/v1/sandboxes/{id}/processes",            AUTH_KEY, BODY_JSON, native_process_start,  NULL },
    { "GET",    "/v1/sandboxes/{id}/processes",            AUTH_KEY, BODY_NONE, native_process_list,   NULL },
    { "GET",    "/v1/sandboxes/{id}/processes/{n}",        AUTH_KEY, BODY_NONE, native_process_get,    NULL },
    { "DELETE", "/v1/sandboxes/{id}/processes/{n}",        AUTH_KEY, BODY_NONE, native_process_kill,   NULL },
    { "GET",    "/v1/sandboxes/{id}/processes/{n}/output", AUTH_KEY, BODY_NONE, native_process_output, NULL },
    { "GET",    "/v1/sandboxes/{id}/processes/{n}/wait",   AUTH_KEY, BODY_NONE, native_process_wait,   NULL },
    { "POST",   "/v1/sandboxes/{id}/processes/{n}/stdin",  AUTH_KEY, BODY_RAW,  native_process_stdin,  NULL },
    { "POST",   "/v1/sandboxes/{id}/processes/{n}/signal", AUTH_KEY, BODY_JSON, native_process_signal, NULL },
    { "POST",   "/v1/sandboxes/{id}/processes/{n}/resize", AUTH_KEY, BODY_JSON, native_process_resize, NULL },

    { "GET",    "/v1/images",        AUTH_KEY, BODY_NONE,   native_image_list,   NULL },
    { "PUT",    "/v1/images/{name}", AUTH_KEY, BODY_STREAM, native_image_put,    &native_image_sink },
    { "DELETE", "/v1/images/{name}", AUTH_KEY, BODY_NONE,   native_image_delete, NULL },

    { "GET",    "/v1/events",    AUTH_KEY,  BODY_NONE, native_event_list, NULL },
    { "POST",   "/v1/keys",      AUTH_KEY,  BODY_JSON, native_key_create, NULL },
    { "GET",    "/v1/keys",      AUTH_KEY,  BODY_NONE, native_key_list,   NULL },
    { "DELETE", "/v1/keys/{id}", AUTH_KEY,  BODY_NONE, native_key_delete, NULL },

    { "POST",   "/v1/teams",        AUTH_KEY, BODY_JSON, native_team_create, NULL },
    { "GET",    "/v1/teams",        AUTH_KEY, BODY_NONE, native_team_list,   NULL },
    { "GET",    "/v1/teams/{name}", AUTH_KEY, BODY_NONE, native_team_get,    NULL },
    { "PATCH",  "/v1/teams/{name}", AUTH_KEY, BODY_JSON, native_team_update, NULL },
    { "DELETE", "/v1/teams/{name}", AUTH_KEY, BODY_NONE, native_team_delete, NULL },

    { "GET",    "/v1/health",    AUTH_NONE, BODY_NONE, native_health,     NULL },
    { "GET",    "/v1/host",      AUTH_KEY,  BODY_NONE, native_host,       NULL },
    { "GET",    "/metrics",      AUTH_NONE, BODY_NONE, native_metrics,    NULL },
};
/* clang-format on */
const size_t native_routes_count = ARRAY_LEN(native_routes);
