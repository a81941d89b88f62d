/* The native dialect: its whole surface in one table, and the shape of its failures (docs/api.md). */
#include "front/http/cors.h"
#include "front/http/metrics.h"
#include "front/native/native.h"

#define ERROR_MAX (64 * 1024)

static int put_error(struct request *req, const struct err *err, native_more_fn more,
                     const void *arg)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(ERROR_MAX);
    struct jout j = JOUT_INIT(&b);
    enum failure told = failure_is_told(err->failure) ? err->failure : FAIL_NONE;
    jout_open(&j, NULL, '{');
    jout_open(&j, "error", '{');
    jout_str(&j, "code", failure_name(told));
    jout_str(&j, "message",
             err->msg[0] ? err->msg : "something went wrong inside the daemon; its log has more");
    jout_str(&j, "request_id", req->id);
    if (more)
        more(&j, arg);
    jout_close(&j, '}');
    jout_close(&j, '}');
    return reply_json(req, failure_status(told), &j);
}

int native_reply_error(struct request *req, const struct err *err, native_more_fn more,
                       const void *arg)
{
    metrics_failure(req->metrics, err->failure);
    return put_error(req, err, more, arg);
}

static int answer_error(struct request *req, const struct err *err)
{
    return put_error(req, err, NULL, NULL);
}

/* clang-format off */
static const struct route routes[] = {
    { "POST",   "/v1/sandboxes",            AUTH_KEY, BODY_JSON, native_sandbox_create, NULL },
    { "GET",    "/v1/sandboxes",            AUTH_KEY, BODY_NONE, native_sandbox_list,   NULL },
    { "GET",    "/v1/sandboxes/{id}",       AUTH_KEY, BODY_NONE, native_sandbox_get,    NULL },
    { "PATCH",  "/v1/sandboxes/{id}",       AUTH_KEY, BODY_JSON, native_sandbox_update, NULL },
    { "DELETE", "/v1/sandboxes/{id}",       AUTH_KEY, BODY_NONE, native_sandbox_delete, NULL },
    { "POST",   "/v1/sandboxes/{id}/stop",  AUTH_KEY, BODY_NONE, native_sandbox_stop,   NULL },
    { "POST",   "/v1/sandboxes/{id}/start", AUTH_KEY, BODY_NONE, native_sandbox_start,  NULL },
    { "POST",   "/v1/sandboxes/{id}/pause", AUTH_KEY, BODY_NONE, native_sandbox_pause,  NULL },
    { "POST",   "/v1/sandboxes/{id}/resume", AUTH_KEY, BODY_NONE, native_sandbox_resume, NULL },
    { "GET",    "/v1/sandboxes/{id}/usage", AUTH_KEY, BODY_NONE, native_sandbox_usage,  NULL },
    { "POST",   "/v1/sandboxes/{id}/leases", AUTH_KEY, BODY_JSON, native_lease_take,    NULL },
    { "GET",    "/v1/sandboxes/{id}/leases", AUTH_KEY, BODY_NONE, native_lease_list,    NULL },
    { "DELETE", "/v1/sandboxes/{id}/leases/{lease}", AUTH_KEY, BODY_NONE, native_lease_end, NULL },
    { "POST",   "/v1/sandboxes/{id}/commit", AUTH_KEY, BODY_JSON, native_sandbox_commit, NULL },
    { "GET",    "/v1/sandboxes/{id}/logs",  AUTH_KEY, BODY_NONE, native_sandbox_logs,   NULL },
    { "GET",    "/v1/sandboxes/{id}/changes", AUTH_KEY, BODY_NONE, native_sandbox_changes, NULL },
    { "GET",    "/v1/sandboxes/{id}/blast", AUTH_KEY, BODY_NONE, native_sandbox_blast,  NULL },
    { "GET",    "/v1/sandboxes/{id}/network/log", AUTH_KEY, BODY_NONE, native_network_log, NULL },
    { "GET",    "/v1/sandboxes/{id}/network/usage", AUTH_KEY, BODY_NONE, native_network_usage, NULL },
    { "GET",    "/v1/sandboxes/{id}/ports/{port}/connect", AUTH_KEY, BODY_NONE, native_port_connect, NULL },

    { "POST",   "/v1/sandboxes/{id}/checkpoints", AUTH_KEY, BODY_JSON, native_checkpoint_create,   NULL },
    { "GET",    "/v1/sandboxes/{id}/checkpoints", AUTH_KEY, BODY_NONE, native_sandbox_checkpoints, NULL },
    { "POST",   "/v1/sandboxes/{id}/restore",     AUTH_KEY, BODY_JSON, native_sandbox_restore,     NULL },
    { "POST",   "/v1/sandboxes/{id}/fork",        AUTH_KEY, BODY_JSON, native_sandbox_fork,        NULL },
    { "POST",   "/v1/sandboxes/{id}/promote",     AUTH_KEY, BODY_JSON, native_sandbox_promote,     NULL },
    { "GET",    "/v1/checkpoints",                AUTH_KEY, BODY_NONE, native_checkpoint_list,     NULL },
    { "GET",    "/v1/checkpoints/{id}",           AUTH_KEY, BODY_NONE, native_checkpoint_get,      NULL },
    { "DELETE", "/v1/checkpoints/{id}",           AUTH_KEY, BODY_NONE, native_checkpoint_delete,   NULL },
    { "GET",    "/v1/checkpoints/{id}/export",    AUTH_KEY, BODY_NONE, native_checkpoint_export,   NULL },
    { "POST",   "/v1/checkpoints/import",         AUTH_KEY, BODY_STREAM, native_checkpoint_import, &native_checkpoint_sink },
    { "GET",    "/v1/checkpoints/{id}/diff",      AUTH_KEY, BODY_NONE, native_checkpoint_diff,     NULL },
    { "POST",   "/v1/checkpoints/{id}/sandboxes", AUTH_KEY, BODY_JSON, native_checkpoint_start,    NULL },
    { "POST",   "/v1/checkpoints/{id}/archive",   AUTH_KEY, BODY_JSON, native_checkpoint_archive,  NULL },
    { "DELETE", "/v1/checkpoints/{id}/archive",   AUTH_KEY, BODY_NONE, native_checkpoint_unarchive, NULL },
    { "POST",   "/v1/checkpoints/{id}/fetch",     AUTH_KEY, BODY_JSON, native_checkpoint_fetch,    NULL },
    { "POST",   "/v1/sandboxes/{id}/archive",     AUTH_KEY, BODY_JSON, native_sandbox_archive,     NULL },
    { "GET",    "/v1/archives",                   AUTH_KEY, BODY_NONE, native_archive_list,        NULL },
    { "POST",   "/v1/archives/{id}/import",       AUTH_KEY, BODY_JSON, native_archive_import,      NULL },
    { "POST",   "/v1/archives/collect",           AUTH_KEY, BODY_JSON, native_archive_collect,     NULL },

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
    { "POST",   "/v1/sandboxes/{id}/files/search",   AUTH_KEY, BODY_JSON,   native_file_search,        NULL },
    { "POST",   "/v1/sandboxes/{id}/files/replace",  AUTH_KEY, BODY_JSON,   native_file_replace,       NULL },
    { "GET",    "/v1/sandboxes/{id}/files/watch",    AUTH_KEY, BODY_NONE,   native_file_watch,         NULL },
    { "POST",   "/v1/sandboxes/{id}/files/watches",  AUTH_KEY, BODY_JSON,   native_file_watch_add,     NULL },
    { "GET",    "/v1/sandboxes/{id}/files/watches/{n}", AUTH_KEY, BODY_NONE,   native_file_watch_poll,    NULL },
    { "DELETE", "/v1/sandboxes/{id}/files/watches/{n}", AUTH_KEY, BODY_NONE,   native_file_watch_remove,  NULL },

    { "POST",   "/v1/volumes",                     AUTH_KEY, BODY_JSON,   native_volume_create, NULL },
    { "GET",    "/v1/volumes",                     AUTH_KEY, BODY_NONE,   native_volume_list,   NULL },
    { "GET",    "/v1/volumes/{id}",                AUTH_KEY, BODY_NONE,   native_volume_get,    NULL },
    { "PATCH",  "/v1/volumes/{id}",                AUTH_KEY, BODY_JSON,   native_volume_update, NULL },
    { "DELETE", "/v1/volumes/{id}",                AUTH_KEY, BODY_NONE,   native_volume_delete, NULL },
    { "POST",   "/v1/volumes/{id}/restore",        AUTH_KEY, BODY_JSON,   native_volume_restore, NULL },
    { "POST",   "/v1/volumes/{id}/checkpoints",    AUTH_KEY, BODY_JSON,   native_volume_checkpoint_create, NULL },
    { "GET",    "/v1/volumes/{id}/checkpoints",    AUTH_KEY, BODY_NONE,   native_volume_checkpoint_list,   NULL },
    { "GET",    "/v1/volumes/{id}/checkpoints/{checkpoint}", AUTH_KEY, BODY_NONE, native_volume_checkpoint_get, NULL },
    { "DELETE", "/v1/volumes/{id}/checkpoints/{checkpoint}", AUTH_KEY, BODY_NONE, native_volume_checkpoint_delete, NULL },
    { "POST",   "/v1/volumes/{id}/checkpoints/{checkpoint}/volumes", AUTH_KEY, BODY_JSON, native_volume_checkpoint_fork, NULL },
    { "GET",    "/v1/volumes/{id}/files",          AUTH_KEY, BODY_NONE,   native_file_get,      NULL },
    { "PUT",    "/v1/volumes/{id}/files",          AUTH_KEY, BODY_STREAM, native_file_put,      &native_file_sink },
    { "DELETE", "/v1/volumes/{id}/files",          AUTH_KEY, BODY_NONE,   native_file_delete,   NULL },
    { "GET",    "/v1/volumes/{id}/files/stat",     AUTH_KEY, BODY_NONE,   native_file_stat,     NULL },
    { "GET",    "/v1/volumes/{id}/files/list",     AUTH_KEY, BODY_NONE,   native_file_list,     NULL },
    { "POST",   "/v1/volumes/{id}/files/mkdir",    AUTH_KEY, BODY_JSON,   native_file_mkdir,    NULL },
    { "POST",   "/v1/volumes/{id}/files/move",     AUTH_KEY, BODY_JSON,   native_file_move,     NULL },
    { "POST",   "/v1/volumes/{id}/files/copy",     AUTH_KEY, BODY_JSON,   native_file_copy,     NULL },
    { "POST",   "/v1/volumes/{id}/files/chmod",    AUTH_KEY, BODY_JSON,   native_file_chmod,    NULL },
    { "POST",   "/v1/volumes/{id}/files/chown",    AUTH_KEY, BODY_JSON,   native_file_chown,    NULL },
    { "POST",   "/v1/volumes/{id}/files/symlink",  AUTH_KEY, BODY_JSON,   native_file_symlink,  NULL },
    { "GET",    "/v1/volumes/{id}/files/usage",    AUTH_KEY, BODY_NONE,   native_file_usage,    NULL },
    { "GET",    "/v1/volumes/{id}/files/find",     AUTH_KEY, BODY_NONE,   native_file_find,     NULL },
    { "GET",    "/v1/volumes/{id}/files/archive",  AUTH_KEY, BODY_NONE,   native_file_archive,  NULL },
    { "PUT",    "/v1/volumes/{id}/files/archive",  AUTH_KEY, BODY_STREAM, native_file_unpack,   &native_file_archive_sink },

    { "POST",   "/v1/secrets",      AUTH_KEY, BODY_JSON, native_secret_create, NULL },
    { "GET",    "/v1/secrets",      AUTH_KEY, BODY_NONE, native_secret_list,   NULL },
    { "GET",    "/v1/secrets/{id}", AUTH_KEY, BODY_NONE, native_secret_get,    NULL },
    { "PATCH",  "/v1/secrets/{id}", AUTH_KEY, BODY_JSON, native_secret_update, NULL },
    { "DELETE", "/v1/secrets/{id}", AUTH_KEY, BODY_NONE, native_secret_delete, NULL },

    { "GET",    "/v1/sandboxes/{id}/ports",                   AUTH_KEY, BODY_NONE, native_port_list,    NULL },
    { "POST",   "/v1/sandboxes/{id}/previews/tokens",         AUTH_KEY, BODY_JSON, native_token_create, NULL },
    { "GET",    "/v1/sandboxes/{id}/previews/tokens",         AUTH_KEY, BODY_NONE, native_token_list,   NULL },
    { "DELETE", "/v1/sandboxes/{id}/previews/tokens/{token}", AUTH_KEY, BODY_NONE, native_token_delete, NULL },
    { "POST",   "/v1/names",        AUTH_KEY, BODY_JSON, native_name_put,    NULL },
    { "GET",    "/v1/names",        AUTH_KEY, BODY_NONE, native_name_list,   NULL },
    { "GET",    "/v1/names/{name}", AUTH_KEY, BODY_NONE, native_name_get,    NULL },
    { "DELETE", "/v1/names/{name}", AUTH_KEY, BODY_NONE, native_name_delete, NULL },

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
    { "POST",   "/v1/images/build",  AUTH_KEY, BODY_STREAM, native_image_build,  &native_build_sink },

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
    { "GET",    "/v1/ca",        AUTH_NONE, BODY_NONE, native_ca,         NULL },
    { "GET",    "/.well-known/acme-challenge/{token}", AUTH_NONE, BODY_NONE, native_challenge, NULL },
    { "GET",    "/v1/health",    AUTH_NONE, BODY_NONE, native_health,     NULL },
    { "GET",    "/v1/openapi.json", AUTH_NONE, BODY_NONE, native_openapi, NULL },
    { "GET",    "/v1/host",      AUTH_KEY,  BODY_NONE, native_host,       NULL },
    { "POST",   "/v1/backup",    AUTH_KEY,  BODY_NONE, native_backup,     NULL },
    { "GET",    "/metrics",      AUTH_NONE, BODY_NONE, native_metrics,    NULL },
};
/* clang-format on */

/* Those that take an Idempotency-Key. */
static const struct once_route once[] = {
    { .method = "POST", .pattern = "/v1/sandboxes" },
    { .method = "POST", .pattern = "/v1/sandboxes/{id}/processes" },
    { .method = "POST", .pattern = "/v1/templates" },
    { .method = "POST", .pattern = "/v1/teams" },
    { .method = "POST", .pattern = "/v1/keys", .secret = true },
};

static const struct operation operations[] = {
    { "create", "POST", "/v1/sandboxes" },
    { "delete", "DELETE", "/v1/sandboxes/{id}" },
    { "start", "POST", "/v1/sandboxes/{id}/start" },
    { "stop", "POST", "/v1/sandboxes/{id}/stop" },
    { "exec", "POST", "/v1/sandboxes/{id}/exec" },
    { "process_start", "POST", "/v1/sandboxes/{id}/processes" },
    { "file_read", "GET", "/v1/sandboxes/{id}/files" },
    { "file_write", "PUT", "/v1/sandboxes/{id}/files" },
    { "file_bulk", "POST", "/v1/sandboxes/{id}/files/read" },
    { "file_bulk", "POST", "/v1/sandboxes/{id}/files/write" },
    { "file_bulk", "GET", "/v1/sandboxes/{id}/files/archive" },
    { "file_bulk", "PUT", "/v1/sandboxes/{id}/files/archive" },
    { "image_import", "PUT", "/v1/images/{name}" },
    { "image_pull", "POST", "/v1/images/pull" },
    { "image_push", "POST", "/v1/images/{name}/push" },
    { "image_commit", "POST", "/v1/sandboxes/{id}/commit" },
    { "build", "POST", "/v1/images/build" },
};

const struct dialect native_dialect = {
    .name = "native",
    .routes = routes,
    .nroutes = ARRAY_LEN(routes),
    .error = answer_error,
    .cors_headers = cors_headers,
    .once = once,
    .nonce = ARRAY_LEN(once),
    .operations = operations,
    .noperations = ARRAY_LEN(operations),
};
