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
    { "POST",   "/v1/sandboxes/{id}/commit", AUTH_KEY, BODY_JSON, native_sandbox_commit, NULL },
    { "GET",    "/v1/sandboxes/{id}/logs",  AUTH_KEY, BODY_NONE, native_sandbox_logs,   NULL },

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

    { "GET",    "/v1/sandboxes/{id}/files",          AUTH_KEY, BODY_NONE,   native_file_get,           NULL },
    { "PUT",    "/v1/sandboxes/{id}/files",          AUTH_KEY, BODY_STREAM, native_file_put,           &native_file_sink },
    { "DELETE", "/v1/sandboxes/{id}/files",          AUTH_KEY, BODY_NONE,   native_file_delete,        NULL },
    { "GET",    "/v1/sandboxes/{id}/files/stat",     AUTH_KEY, BODY_NONE,   native_file_stat,          NULL },
    { "GET",    "/v1/sandboxes/{id}/files/list",     AUTH_KEY, BODY_NONE,   native_file_list,          NULL },
    { "POST",   "/v1/sandboxes/{id}/files/mkdir",    AUTH_KEY, BODY_JSON,   native_file_mkdir,         NULL },
    { "POST",   "/v1/sandboxes/{id}/files/move",     AUTH_KEY, BODY_JSON,   native_file_move,          NULL },
    { "POST",   "/v1/sandboxes/{id}/files/copy",     AUTH_KEY, BODY_JSON,   native_file_copy,          NULL },
    { "POST",   "/v1/sandboxes/{id}/files/chmod",    AUTH_KEY, BODY_JSON,   native_file_chmod,         NULL },
    { "POST",   "/v1/sandboxes/{id}/files/chown",    AUTH_KEY, BODY_JSON,   native_file_chown,         NULL },
    { "POST",   "/v1/sandboxes/{id}/files/symlink",  AUTH_KEY, BODY_JSON,   native_file_symlink,       NULL },
    { "GET",    "/v1/sandboxes/{id}/files/readlink", AUTH_KEY, BODY_NONE,   native_file_readlink,      NULL },
    { "POST",   "/v1/sandboxes/{id}/files/truncate", AUTH_KEY, BODY_JSON,   native_file_truncate,      NULL },
    { "GET",    "/v1/sandboxes/{id}/files/xattrs",   AUTH_KEY, BODY_NONE,   native_file_xattrs,        NULL },
    { "PUT",    "/v1/sandboxes/{id}/files/xattrs",   AUTH_KEY, BODY_JSON,   native_file_xattr_set,     NULL },
    { "DELETE", "/v1/sandboxes/{id}/files/xattrs",   AUTH_KEY, BODY_NONE,   native_file_xattr_remove,  NULL },
    { "GET",    "/v1/sandboxes/{id}/files/usage",    AUTH_KEY, BODY_NONE,   native_file_usage,         NULL },
    { "GET",    "/v1/sandboxes/{id}/files/find",     AUTH_KEY, BODY_NONE,   native_file_find,          NULL },
    { "GET",    "/v1/sandboxes/{id}/files/archive",  AUTH_KEY, BODY_NONE,   native_file_archive,       NULL },
    { "PUT",    "/v1/sandboxes/{id}/files/archive",  AUTH_KEY, BODY_STREAM, native_file_unpack,        &native_file_archive_sink },
    { "POST",   "/v1/sandboxes/{id}/files/read",     AUTH_KEY, BODY_JSON,   native_file_read_many,     NULL },
    { "POST",   "/v1/sandboxes/{id}/files/write",    AUTH_KEY, BODY_STREAM, native_file_write_many,    &native_file_write_sink },

    { "GET",    "/v1/images",        AUTH_KEY, BODY_NONE,   native_image_list,   NULL },
    { "GET",    "/v1/images/{name}", AUTH_KEY, BODY_NONE,   native_image_get,    NULL },
    { "PUT",    "/v1/images/{name}", AUTH_KEY, BODY_STREAM, native_image_put,    &native_image_sink },
    { "DELETE", "/v1/images/{name}", AUTH_KEY, BODY_NONE,   native_image_delete, NULL },
    { "GET",    "/v1/images/{name}/history", AUTH_KEY, BODY_NONE, native_image_history, NULL },
    { "GET",    "/v1/images/{name}/export",  AUTH_KEY, BODY_NONE, native_image_export,  NULL },
    { "POST",   "/v1/images/{name}/tag",     AUTH_KEY, BODY_JSON, native_image_tag,     NULL },
    { "POST",   "/v1/images/prune",          AUTH_KEY, BODY_JSON, native_image_prune,   NULL },
    { "POST",   "/v1/images/pull",        AUTH_KEY, BODY_JSON, native_image_pull, NULL },
    { "POST",   "/v1/images/{name}/push", AUTH_KEY, BODY_JSON, native_image_push, NULL },

    { "GET",    "/v1/events",    AUTH_KEY,  BODY_NONE, native_event_list, NULL },
    { "POST",   "/v1/keys",      AUTH_KEY,  BODY_JSON, native_key_create, NULL },
    { "GET",    "/v1/keys",      AUTH_KEY,  BODY_NONE, native_key_list,   NULL },
    { "DELETE", "/v1/keys/{id}", AUTH_KEY,  BODY_NONE, native_key_delete, NULL },

    { "POST",   "/v1/templates",        AUTH_KEY, BODY_JSON, native_template_put,    NULL },
    { "GET",    "/v1/templates",        AUTH_KEY, BODY_NONE, native_template_list,   NULL },
    { "GET",    "/v1/templates/{name}", AUTH_KEY, BODY_NONE, native_template_get,    NULL },
    { "DELETE", "/v1/templates/{name}", AUTH_KEY, BODY_NONE, native_template_delete, NULL },

    { "GET",    "/v1/usage",        AUTH_KEY, BODY_NONE, native_usage,       NULL },
    { "POST",   "/v1/teams",        AUTH_KEY, BODY_JSON, native_team_create, NULL },
    { "GET",    "/v1/teams",        AUTH_KEY, BODY_NONE, native_team_list,   NULL },
    { "GET",    "/v1/teams/{name}", AUTH_KEY, BODY_NONE, native_team_get,    NULL },
    { "PATCH",  "/v1/teams/{name}", AUTH_KEY, BODY_JSON, native_team_update, NULL },
    { "DELETE", "/v1/teams/{name}", AUTH_KEY, BODY_NONE, native_team_delete, NULL },

    { "GET",    "/v1/logs",      AUTH_KEY,  BODY_NONE, native_log_list,   NULL },
    { "GET",    "/v1/health",    AUTH_NONE, BODY_NONE, native_health,     NULL },
    { "GET",    "/v1/openapi.json", AUTH_NONE, BODY_NONE, native_openapi, NULL },
    { "GET",    "/v1/host",      AUTH_KEY,  BODY_NONE, native_host,       NULL },
    { "GET",    "/metrics",      AUTH_NONE, BODY_NONE, native_metrics,    NULL },
};
/* clang-format on */
const size_t native_routes_count = ARRAY_LEN(native_routes);

const struct once_route native_once[] = {
    { "POST", "/v1/sandboxes", false },
    { "POST", "/v1/sandboxes/{id}/processes", false },
    { "POST", "/v1/templates", false },
    { "POST", "/v1/teams", false },
    { "POST", "/v1/keys", true },
};
const size_t native_once_count = ARRAY_LEN(native_once);
