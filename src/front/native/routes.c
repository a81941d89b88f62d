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
    { "POST",   "/v1/sandboxes",            auth_key, BODY_JSON, native_sandbox_create, NULL },
    { "GET",    "/v1/sandboxes",            auth_key, BODY_NONE, native_sandbox_list,   NULL },
    { "GET",    "/v1/sandboxes/{id}",       auth_key, BODY_NONE, native_sandbox_get,    NULL },
    { "PATCH",  "/v1/sandboxes/{id}",       auth_key, BODY_JSON, native_sandbox_update, NULL },
    { "DELETE", "/v1/sandboxes/{id}",       auth_key, BODY_NONE, native_sandbox_delete, NULL },
    { "POST",   "/v1/sandboxes/{id}/stop",  auth_key, BODY_NONE, native_sandbox_stop,   NULL },
    { "POST",   "/v1/sandboxes/{id}/start", auth_key, BODY_NONE, native_sandbox_start,  NULL },
    { "POST",   "/v1/sandboxes/{id}/pause", auth_key, BODY_NONE, native_sandbox_pause,  NULL },
    { "POST",   "/v1/sandboxes/{id}/resume", auth_key, BODY_NONE, native_sandbox_resume, NULL },
    { "GET",    "/v1/sandboxes/{id}/usage", auth_key, BODY_NONE, native_sandbox_usage,  NULL },
    { "POST",   "/v1/sandboxes/{id}/leases", auth_key, BODY_JSON, native_lease_take,    NULL },
    { "GET",    "/v1/sandboxes/{id}/leases", auth_key, BODY_NONE, native_lease_list,    NULL },
    { "DELETE", "/v1/sandboxes/{id}/leases/{lease}", auth_key, BODY_NONE, native_lease_end, NULL },
    { "POST",   "/v1/sandboxes/{id}/commit", auth_key, BODY_JSON, native_sandbox_commit, NULL },
    { "GET",    "/v1/sandboxes/{id}/logs",  auth_key, BODY_NONE, native_sandbox_logs,   NULL },
    { "GET",    "/v1/sandboxes/{id}/changes", auth_key, BODY_NONE, native_sandbox_changes, NULL },
    { "GET",    "/v1/sandboxes/{id}/blast", auth_key, BODY_NONE, native_sandbox_blast,  NULL },
    { "GET",    "/v1/sandboxes/{id}/network/log", auth_key, BODY_NONE, native_network_log, NULL },
    { "GET",    "/v1/sandboxes/{id}/network/usage", auth_key, BODY_NONE, native_network_usage, NULL },
    { "GET",    "/v1/sandboxes/{id}/ports/{port}/connect", auth_key, BODY_NONE, native_port_connect, NULL },

    { "POST",   "/v1/sandboxes/{id}/checkpoints", auth_key, BODY_JSON, native_checkpoint_create,   NULL },
    { "GET",    "/v1/sandboxes/{id}/checkpoints", auth_key, BODY_NONE, native_sandbox_checkpoints, NULL },
    { "POST",   "/v1/sandboxes/{id}/restore",     auth_key, BODY_JSON, native_sandbox_restore,     NULL },
    { "POST",   "/v1/sandboxes/{id}/fork",        auth_key, BODY_JSON, native_sandbox_fork,        NULL },
    { "POST",   "/v1/sandboxes/{id}/promote",     auth_key, BODY_JSON, native_sandbox_promote,     NULL },
    { "GET",    "/v1/checkpoints",                auth_key, BODY_NONE, native_checkpoint_list,     NULL },
    { "GET",    "/v1/checkpoints/{id}",           auth_key, BODY_NONE, native_checkpoint_get,      NULL },
    { "DELETE", "/v1/checkpoints/{id}",           auth_key, BODY_NONE, native_checkpoint_delete,   NULL },
    { "GET",    "/v1/checkpoints/{id}/export",    auth_key, BODY_NONE, native_checkpoint_export,   NULL },
    { "POST",   "/v1/checkpoints/import",         auth_key, BODY_STREAM, native_checkpoint_import, &native_checkpoint_sink },
    { "GET",    "/v1/checkpoints/{id}/diff",      auth_key, BODY_NONE, native_checkpoint_diff,     NULL },
    { "POST",   "/v1/checkpoints/{id}/sandboxes", auth_key, BODY_JSON, native_checkpoint_start,    NULL },
    { "POST",   "/v1/checkpoints/{id}/archive",   auth_key, BODY_JSON, native_checkpoint_archive,  NULL },
    { "DELETE", "/v1/checkpoints/{id}/archive",   auth_key, BODY_NONE, native_checkpoint_unarchive, NULL },
    { "POST",   "/v1/checkpoints/{id}/fetch",     auth_key, BODY_JSON, native_checkpoint_fetch,    NULL },
    { "POST",   "/v1/sandboxes/{id}/archive",     auth_key, BODY_JSON, native_sandbox_archive,     NULL },
    { "GET",    "/v1/archives",                   auth_key, BODY_NONE, native_archive_list,        NULL },
    { "POST",   "/v1/archives/{id}/import",       auth_key, BODY_JSON, native_archive_import,      NULL },
    { "POST",   "/v1/archives/collect",           auth_key, BODY_JSON, native_archive_collect,     NULL },

    { "POST",   "/v1/sandboxes/{id}/exec",                 auth_key, BODY_JSON, native_exec,           NULL },
    { "POST",   "/v1/sandboxes/{id}/processes",            auth_key, BODY_JSON, native_process_start,  NULL },
    { "GET",    "/v1/sandboxes/{id}/processes",            auth_key, BODY_NONE, native_process_list,   NULL },
    { "GET",    "/v1/sandboxes/{id}/processes/{n}",        auth_key, BODY_NONE, native_process_get,    NULL },
    { "DELETE", "/v1/sandboxes/{id}/processes/{n}",        auth_key, BODY_NONE, native_process_kill,   NULL },
    { "GET",    "/v1/sandboxes/{id}/processes/{n}/output", auth_key, BODY_NONE, native_process_output, NULL },
    { "GET",    "/v1/sandboxes/{id}/processes/{n}/wait",   auth_key, BODY_NONE, native_process_wait,   NULL },
    { "POST",   "/v1/sandboxes/{id}/processes/{n}/stdin",  auth_key, BODY_RAW,  native_process_stdin,  NULL },
    { "POST",   "/v1/sandboxes/{id}/processes/{n}/signal", auth_key, BODY_JSON, native_process_signal, NULL },
    { "POST",   "/v1/sandboxes/{id}/processes/{n}/resize", auth_key, BODY_JSON, native_process_resize, NULL },

    { "GET",    "/v1/sandboxes/{id}/files",          auth_key, BODY_NONE,   native_file_get,           NULL },
    { "PUT",    "/v1/sandboxes/{id}/files",          auth_key, BODY_STREAM, native_file_put,           &native_file_sink },
    { "DELETE", "/v1/sandboxes/{id}/files",          auth_key, BODY_NONE,   native_file_delete,        NULL },
    { "GET",    "/v1/sandboxes/{id}/files/stat",     auth_key, BODY_NONE,   native_file_stat,          NULL },
    { "GET",    "/v1/sandboxes/{id}/files/list",     auth_key, BODY_NONE,   native_file_list,          NULL },
    { "POST",   "/v1/sandboxes/{id}/files/mkdir",    auth_key, BODY_JSON,   native_file_mkdir,         NULL },
    { "POST",   "/v1/sandboxes/{id}/files/move",     auth_key, BODY_JSON,   native_file_move,          NULL },
    { "POST",   "/v1/sandboxes/{id}/files/copy",     auth_key, BODY_JSON,   native_file_copy,          NULL },
    { "POST",   "/v1/sandboxes/{id}/files/chmod",    auth_key, BODY_JSON,   native_file_chmod,         NULL },
    { "POST",   "/v1/sandboxes/{id}/files/chown",    auth_key, BODY_JSON,   native_file_chown,         NULL },
    { "POST",   "/v1/sandboxes/{id}/files/symlink",  auth_key, BODY_JSON,   native_file_symlink,       NULL },
    { "GET",    "/v1/sandboxes/{id}/files/readlink", auth_key, BODY_NONE,   native_file_readlink,      NULL },
    { "POST",   "/v1/sandboxes/{id}/files/truncate", auth_key, BODY_JSON,   native_file_truncate,      NULL },
    { "GET",    "/v1/sandboxes/{id}/files/xattrs",   auth_key, BODY_NONE,   native_file_xattrs,        NULL },
    { "PUT",    "/v1/sandboxes/{id}/files/xattrs",   auth_key, BODY_JSON,   native_file_xattr_set,     NULL },
    { "DELETE", "/v1/sandboxes/{id}/files/xattrs",   auth_key, BODY_NONE,   native_file_xattr_remove,  NULL },
    { "GET",    "/v1/sandboxes/{id}/files/usage",    auth_key, BODY_NONE,   native_file_usage,         NULL },
    { "GET",    "/v1/sandboxes/{id}/files/find",     auth_key, BODY_NONE,   native_file_find,          NULL },
    { "GET",    "/v1/sandboxes/{id}/files/archive",  auth_key, BODY_NONE,   native_file_archive,       NULL },
    { "PUT",    "/v1/sandboxes/{id}/files/archive",  auth_key, BODY_STREAM, native_file_unpack,        &native_file_archive_sink },
    { "POST",   "/v1/sandboxes/{id}/files/read",     auth_key, BODY_JSON,   native_file_read_many,     NULL },
    { "POST",   "/v1/sandboxes/{id}/files/write",    auth_key, BODY_STREAM, native_file_write_many,    &native_file_write_sink },
    { "POST",   "/v1/sandboxes/{id}/files/search",   auth_key, BODY_JSON,   native_file_search,        NULL },
    { "POST",   "/v1/sandboxes/{id}/files/replace",  auth_key, BODY_JSON,   native_file_replace,       NULL },
    { "GET",    "/v1/sandboxes/{id}/files/watch",    auth_key, BODY_NONE,   native_file_watch,         NULL },
    { "POST",   "/v1/sandboxes/{id}/files/watches",  auth_key, BODY_JSON,   native_file_watch_add,     NULL },
    { "GET",    "/v1/sandboxes/{id}/files/watches/{n}", auth_key, BODY_NONE,   native_file_watch_poll,    NULL },
    { "DELETE", "/v1/sandboxes/{id}/files/watches/{n}", auth_key, BODY_NONE,   native_file_watch_remove,  NULL },

    { "POST",   "/v1/volumes",                     auth_key, BODY_JSON,   native_volume_create, NULL },
    { "GET",    "/v1/volumes",                     auth_key, BODY_NONE,   native_volume_list,   NULL },
    { "GET",    "/v1/volumes/{id}",                auth_key, BODY_NONE,   native_volume_get,    NULL },
    { "PATCH",  "/v1/volumes/{id}",                auth_key, BODY_JSON,   native_volume_update, NULL },
    { "DELETE", "/v1/volumes/{id}",                auth_key, BODY_NONE,   native_volume_delete, NULL },
    { "POST",   "/v1/volumes/{id}/restore",        auth_key, BODY_JSON,   native_volume_restore, NULL },
    { "POST",   "/v1/volumes/{id}/checkpoints",    auth_key, BODY_JSON,   native_volume_checkpoint_create, NULL },
    { "GET",    "/v1/volumes/{id}/checkpoints",    auth_key, BODY_NONE,   native_volume_checkpoint_list,   NULL },
    { "GET",    "/v1/volumes/{id}/checkpoints/{checkpoint}", auth_key, BODY_NONE, native_volume_checkpoint_get, NULL },
    { "DELETE", "/v1/volumes/{id}/checkpoints/{checkpoint}", auth_key, BODY_NONE, native_volume_checkpoint_delete, NULL },
    { "POST",   "/v1/volumes/{id}/checkpoints/{checkpoint}/volumes", auth_key, BODY_JSON, native_volume_checkpoint_fork, NULL },
    { "GET",    "/v1/volumes/{id}/files",          auth_key, BODY_NONE,   native_file_get,      NULL },
    { "PUT",    "/v1/volumes/{id}/files",          auth_key, BODY_STREAM, native_file_put,      &native_file_sink },
    { "DELETE", "/v1/volumes/{id}/files",          auth_key, BODY_NONE,   native_file_delete,   NULL },
    { "GET",    "/v1/volumes/{id}/files/stat",     auth_key, BODY_NONE,   native_file_stat,     NULL },
    { "GET",    "/v1/volumes/{id}/files/list",     auth_key, BODY_NONE,   native_file_list,     NULL },
    { "POST",   "/v1/volumes/{id}/files/mkdir",    auth_key, BODY_JSON,   native_file_mkdir,    NULL },
    { "POST",   "/v1/volumes/{id}/files/move",     auth_key, BODY_JSON,   native_file_move,     NULL },
    { "POST",   "/v1/volumes/{id}/files/copy",     auth_key, BODY_JSON,   native_file_copy,     NULL },
    { "POST",   "/v1/volumes/{id}/files/chmod",    auth_key, BODY_JSON,   native_file_chmod,    NULL },
    { "POST",   "/v1/volumes/{id}/files/chown",    auth_key, BODY_JSON,   native_file_chown,    NULL },
    { "POST",   "/v1/volumes/{id}/files/symlink",  auth_key, BODY_JSON,   native_file_symlink,  NULL },
    { "GET",    "/v1/volumes/{id}/files/usage",    auth_key, BODY_NONE,   native_file_usage,    NULL },
    { "GET",    "/v1/volumes/{id}/files/find",     auth_key, BODY_NONE,   native_file_find,     NULL },
    { "GET",    "/v1/volumes/{id}/files/archive",  auth_key, BODY_NONE,   native_file_archive,  NULL },
    { "PUT",    "/v1/volumes/{id}/files/archive",  auth_key, BODY_STREAM, native_file_unpack,   &native_file_archive_sink },

    { "POST",   "/v1/secrets",      auth_key, BODY_JSON, native_secret_create, NULL },
    { "GET",    "/v1/secrets",      auth_key, BODY_NONE, native_secret_list,   NULL },
    { "GET",    "/v1/secrets/{id}", auth_key, BODY_NONE, native_secret_get,    NULL },
    { "PATCH",  "/v1/secrets/{id}", auth_key, BODY_JSON, native_secret_update, NULL },
    { "DELETE", "/v1/secrets/{id}", auth_key, BODY_NONE, native_secret_delete, NULL },

    { "GET",    "/v1/sandboxes/{id}/ports",                   auth_key, BODY_NONE, native_port_list,    NULL },
    { "POST",   "/v1/sandboxes/{id}/previews/tokens",         auth_key, BODY_JSON, native_token_create, NULL },
    { "GET",    "/v1/sandboxes/{id}/previews/tokens",         auth_key, BODY_NONE, native_token_list,   NULL },
    { "DELETE", "/v1/sandboxes/{id}/previews/tokens/{token}", auth_key, BODY_NONE, native_token_delete, NULL },
    { "POST",   "/v1/names",        auth_key, BODY_JSON, native_name_put,    NULL },
    { "GET",    "/v1/names",        auth_key, BODY_NONE, native_name_list,   NULL },
    { "GET",    "/v1/names/{name}", auth_key, BODY_NONE, native_name_get,    NULL },
    { "DELETE", "/v1/names/{name}", auth_key, BODY_NONE, native_name_delete, NULL },

    { "GET",    "/v1/images",        auth_key, BODY_NONE,   native_image_list,   NULL },
    { "GET",    "/v1/images/{name}", auth_key, BODY_NONE,   native_image_get,    NULL },
    { "PUT",    "/v1/images/{name}", auth_key, BODY_STREAM, native_image_put,    &native_image_sink },
    { "DELETE", "/v1/images/{name}", auth_key, BODY_NONE,   native_image_delete, NULL },
    { "GET",    "/v1/images/{name}/history", auth_key, BODY_NONE, native_image_history, NULL },
    { "GET",    "/v1/images/{name}/export",  auth_key, BODY_NONE, native_image_export,  NULL },
    { "POST",   "/v1/images/{name}/tag",     auth_key, BODY_JSON, native_image_tag,     NULL },
    { "POST",   "/v1/images/prune",          auth_key, BODY_JSON, native_image_prune,   NULL },
    { "POST",   "/v1/images/pull",        auth_key, BODY_JSON, native_image_pull, NULL },
    { "POST",   "/v1/images/{name}/push", auth_key, BODY_JSON, native_image_push, NULL },
    { "POST",   "/v1/images/build",  auth_key, BODY_STREAM, native_image_build,  &native_build_sink },

    { "GET",    "/v1/events",    auth_key,  BODY_NONE, native_event_list, NULL },
    { "POST",   "/v1/keys",      auth_key,  BODY_JSON, native_key_create, NULL },
    { "GET",    "/v1/keys",      auth_key,  BODY_NONE, native_key_list,   NULL },
    { "DELETE", "/v1/keys/{id}", auth_key,  BODY_NONE, native_key_delete, NULL },

    { "POST",   "/v1/templates",        auth_key, BODY_JSON, native_template_put,    NULL },
    { "GET",    "/v1/templates",        auth_key, BODY_NONE, native_template_list,   NULL },
    { "GET",    "/v1/templates/{name}", auth_key, BODY_NONE, native_template_get,    NULL },
    { "DELETE", "/v1/templates/{name}", auth_key, BODY_NONE, native_template_delete, NULL },

    { "GET",    "/v1/usage",        auth_key, BODY_NONE, native_usage,       NULL },
    { "POST",   "/v1/teams",        auth_key, BODY_JSON, native_team_create, NULL },
    { "GET",    "/v1/teams",        auth_key, BODY_NONE, native_team_list,   NULL },
    { "GET",    "/v1/teams/{name}", auth_key, BODY_NONE, native_team_get,    NULL },
    { "PATCH",  "/v1/teams/{name}", auth_key, BODY_JSON, native_team_update, NULL },
    { "DELETE", "/v1/teams/{name}", auth_key, BODY_NONE, native_team_delete, NULL },

    { "GET",    "/v1/logs",      auth_key,  BODY_NONE, native_log_list,   NULL },
    { "GET",    "/v1/ca",        auth_none, BODY_NONE, native_ca,         NULL },
    { "GET",    "/.well-known/acme-challenge/{token}", auth_none, BODY_NONE, native_challenge, NULL },
    { "GET",    "/v1/health",    auth_none, BODY_NONE, native_health,     NULL },
    { "GET",    "/v1/openapi.json", auth_none, BODY_NONE, native_openapi, NULL },
    { "GET",    "/v1/host",      auth_key,  BODY_NONE, native_host,       NULL },
    { "POST",   "/v1/backup",    auth_key,  BODY_NONE, native_backup,     NULL },
    { "GET",    "/metrics",      auth_none, BODY_NONE, native_metrics,    NULL },
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
