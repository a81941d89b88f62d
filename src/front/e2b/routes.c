#include <errno.h>
#include <string.h>

#include "front/e2b/caller.h"
#include "front/e2b/e2b.h"
#include "front/e2b/envd.h"
#include "front/e2b/templates.h"
#include "front/e2b/secrets.h"
#include "front/e2b/volumes.h"
#include "front/http/cors.h"

/* Every failure is a number, the status again, and a sentence; that of a sandbox which does not
 * answer has a shape of its own. */
static int put_error(struct request *req, const struct err *err)
{
    const char *id = request_header(req, "E2b-Sandbox-Id");
    bool of_envd = req->route && req->route->auth != auth_key;
    if (of_envd && (err->code == ENOTCONN || err->code == ECONNRESET))
        return envd_gone(req, id ? id : "");
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    /* More sandboxes than the team may have: these clients know it by the status. */
    bool quota = err->failure == FAIL_QUOTA_EXCEEDED;
    unsigned status = quota ? 429 : failure_status(err->failure);
    jout_open(&j, NULL, '{');
    jout_uint(&j, "code", status);
    jout_str(&j, "message", err->msg[0] ? err->msg : "something went wrong inside the daemon");
    jout_close(&j, '}');
    return reply_json(req, status, &j);
}

/* clang-format off */
#define CONTROL(method_, path_, body_, handler_) \
    { method_, "/e2b" path_, auth_key, body_, handler_, NULL }
#define ENVD(method_, path_, body_, handler_) \
    { method_, "/e2b" path_, caller_by_token, body_, handler_, NULL }
#define CONTENT(method_, path_, body_, handler_) \
    { method_, "/e2b/volumecontent/{id}" path_, caller_by_volume_token, body_, handler_, NULL }

static const struct route routes[] = {
    CONTROL("POST",   "/v2/sandboxes",              BODY_JSON, e2b_sandbox_create),
    CONTROL("POST",   "/sandboxes",                 BODY_JSON, e2b_sandbox_create_v1),
    CONTROL("GET",    "/v2/sandboxes",              BODY_NONE, e2b_sandbox_list),
    CONTROL("GET",    "/sandboxes",                 BODY_NONE, e2b_sandbox_list_v1),
    CONTROL("GET",    "/sandboxes/metrics",         BODY_NONE, e2b_sandboxes_metrics),
    CONTROL("GET",    "/sandboxes/{id}",            BODY_NONE, e2b_sandbox_get),
    CONTROL("DELETE", "/sandboxes/{id}",            BODY_NONE, e2b_sandbox_kill),
    CONTROL("POST",   "/sandboxes/{id}/timeout",    BODY_JSON, e2b_sandbox_timeout),
    CONTROL("POST",   "/sandboxes/{id}/refreshes",  BODY_JSON, e2b_sandbox_refresh),
    CONTROL("POST",   "/v2/sandboxes/{id}/connect", BODY_JSON, e2b_sandbox_connect),
    CONTROL("POST",   "/sandboxes/{id}/connect",    BODY_JSON, e2b_sandbox_connect),
    CONTROL("POST",   "/sandboxes/{id}/pause",      BODY_JSON, e2b_sandbox_pause),
    CONTROL("POST",   "/sandboxes/{id}/resume",     BODY_JSON, e2b_sandbox_resume),
    CONTROL("POST",   "/sandboxes/{id}/fork",       BODY_JSON, e2b_sandbox_fork),
    CONTROL("POST",   "/sandboxes/{id}/snapshots",  BODY_JSON, e2b_sandbox_snapshot),
    CONTROL("GET",    "/snapshots",                 BODY_NONE, e2b_snapshots),
    CONTROL("PUT",    "/sandboxes/{id}/network",    BODY_JSON, e2b_sandbox_network),
    CONTROL("GET",    "/sandboxes/{id}/metrics",    BODY_NONE, e2b_sandbox_metrics),
    CONTROL("GET",    "/v2/sandboxes/{id}/logs",    BODY_NONE, e2b_sandbox_logs),
    CONTROL("GET",    "/sandboxes/{id}/logs",       BODY_NONE, e2b_sandbox_logs_v1),
    CONTROL("GET",    "/teams",                     BODY_NONE, e2b_teams),
    CONTROL("GET",    "/teams/{id}/metrics",        BODY_NONE, e2b_team_metrics),
    CONTROL("GET",    "/teams/{id}/metrics/max",    BODY_NONE, e2b_team_metrics_max),

    CONTROL("POST",   "/v3/templates",              BODY_JSON, e2b_build_request),
    CONTROL("POST",   "/v2/templates",              BODY_JSON, e2b_build_request),
    CONTROL("POST",   "/templates",                 BODY_JSON, e2b_build_request_old),
    CONTROL("GET",    "/v2/templates",              BODY_NONE, e2b_template_list),
    CONTROL("GET",    "/templates",                 BODY_NONE, e2b_template_list),
    CONTROL("POST",   "/templates/tags",            BODY_JSON, e2b_tags_assign),
    CONTROL("DELETE", "/templates/tags",            BODY_JSON, e2b_tags_remove),
    CONTROL("GET",    "/templates/aliases/{name}",  BODY_NONE, e2b_template_alias),
    CONTROL("GET",    "/templates/{id}",            BODY_NONE, e2b_template_get),
    CONTROL("DELETE", "/templates/{id}",            BODY_NONE, e2b_template_delete),
    CONTROL("PATCH",  "/templates/{id}",            BODY_JSON, e2b_template_patch),
    CONTROL("PATCH",  "/v2/templates/{id}",         BODY_JSON, e2b_template_patch),
    CONTROL("GET",    "/templates/{id}/tags",       BODY_NONE, e2b_tags_list),
    CONTROL("GET",    "/templates/{id}/files/{hash}", BODY_NONE, e2b_template_files),
    { "PUT", "/e2b/templates/{id}/files/{hash}", e2b_upload_auth, BODY_STREAM, e2b_template_upload,
      &e2b_upload_sink },
    CONTROL("POST",   "/v2/templates/{id}/builds/{build}",      BODY_JSON, e2b_build_start),
    CONTROL("GET",    "/templates/{id}/builds/{build}/status",  BODY_NONE, e2b_build_status),
    CONTROL("GET",    "/templates/{id}/builds/{build}/logs",    BODY_NONE, e2b_build_logs),

    CONTROL("GET",    "/secrets",                   BODY_NONE, e2b_secret_list),
    CONTROL("POST",   "/secrets",                   BODY_JSON, e2b_secret_create),
    CONTROL("GET",    "/secrets/{id}",              BODY_NONE, e2b_secret_get),
    CONTROL("POST",   "/secrets/{id}",              BODY_JSON, e2b_secret_update),
    CONTROL("DELETE", "/secrets/{id}",              BODY_NONE, e2b_secret_delete),
    CONTROL("POST",   "/volumes",                   BODY_JSON, e2b_volume_create),
    CONTROL("GET",    "/volumes",                   BODY_NONE, e2b_volume_list),
    CONTROL("GET",    "/volumes/{id}",              BODY_NONE, e2b_volume_get),
    CONTROL("DELETE", "/volumes/{id}",              BODY_NONE, e2b_volume_delete),
    CONTENT("GET",    "/dir", BODY_NONE, e2b_content_list),
    CONTENT("POST",   "/dir", BODY_RAW,  e2b_content_make_dir),
    CONTENT("GET",    "/path", BODY_NONE, e2b_content_stat),
    CONTENT("PATCH",  "/path", BODY_JSON, e2b_content_change),
    CONTENT("DELETE", "/path", BODY_NONE, e2b_content_remove),
    CONTENT("GET",    "/file", BODY_NONE, e2b_content_read),
    { "PUT", "/e2b/volumecontent/{id}/file", caller_by_volume_token, BODY_STREAM, e2b_content_write,
      &e2b_content_sink },

    { "GET", "/e2b/health", auth_none, BODY_NONE, e2b_health, NULL },
    ENVD("GET",  "/envs",                          BODY_NONE, envd_envs),
    ENVD("GET",  "/metrics",                       BODY_NONE, envd_metrics),
    ENVD("POST", "/files/compose",                 BODY_JSON, envd_files_compose),
    { "GET",  "/e2b/files", caller_by_link_to_read,  BODY_NONE,   envd_files_get,  NULL },
    { "POST", "/e2b/files", caller_by_link_to_write, BODY_STREAM, envd_files_post, &envd_files_sink },
    { "GET",  "/files",     caller_by_link_to_read,  BODY_NONE,   envd_files_get,  NULL },
    { "POST", "/files",     caller_by_link_to_write, BODY_STREAM, envd_files_post, &envd_files_sink },
    ENVD("POST", "/process.Process/Start",         BODY_RAW,  envd_process_start),
    ENVD("POST", "/process.Process/Connect",       BODY_RAW,  envd_process_connect),
    ENVD("POST", "/process.Process/List",          BODY_RAW,  envd_process_list),
    ENVD("POST", "/process.Process/Update",        BODY_RAW,  envd_process_update),
    ENVD("POST", "/process.Process/SendInput",     BODY_RAW,  envd_process_input),
    { "POST", "/e2b/process.Process/StreamInput", caller_by_token, BODY_STREAM, envd_process_stream_input,
      &envd_input_sink },
    ENVD("POST", "/process.Process/CloseStdin",    BODY_RAW,  envd_process_close_stdin),
    ENVD("POST", "/process.Process/SendSignal",    BODY_RAW,  envd_process_signal),
    ENVD("POST", "/filesystem.Filesystem/Stat",    BODY_RAW,  envd_fs_stat),
    ENVD("POST", "/filesystem.Filesystem/MakeDir", BODY_RAW,  envd_fs_make_dir),
    ENVD("POST", "/filesystem.Filesystem/Move",    BODY_RAW,  envd_fs_move),
    ENVD("POST", "/filesystem.Filesystem/ListDir", BODY_RAW,  envd_fs_list_dir),
    ENVD("POST", "/filesystem.Filesystem/Remove",  BODY_RAW,  envd_fs_remove),
    ENVD("POST", "/filesystem.Filesystem/WatchDir", BODY_RAW, envd_fs_watch_dir),
    ENVD("POST", "/filesystem.Filesystem/CreateWatcher", BODY_RAW, envd_fs_create_watcher),
    ENVD("POST", "/filesystem.Filesystem/GetWatcherEvents", BODY_RAW, envd_fs_get_watcher_events),
    ENVD("POST", "/filesystem.Filesystem/RemoveWatcher", BODY_RAW, envd_fs_remove_watcher),
};
/* clang-format on */

/* The SDKs build the address of a signed link from the origin alone: those come without the mount. */
static const char *const mounts[] = { "e2b", "files", NULL };

/* The answer has the sandbox's token. */
static const struct once_route once[] = {
    { .method = "POST", .pattern = "/e2b/v2/sandboxes", .anew = true },
    { .method = "POST", .pattern = "/e2b/sandboxes", .anew = true },
};

static const struct operation operations[] = {
    { "create", "POST", "/e2b/v2/sandboxes" },
    { "create", "POST", "/e2b/sandboxes" },
    { "delete", "DELETE", "/e2b/sandboxes/{id}" },
    { "process_start", "POST", "/e2b/process.Process/Start" },
    { "file_read", "GET", "/e2b/files" },
    { "file_read", "GET", "/files" },
    { "file_write", "POST", "/e2b/files" },
    { "file_write", "POST", "/files" },
};

const struct dialect e2b_dialect = {
    .name = "e2b",
    .mounts = mounts,
    .routes = routes,
    .nroutes = ARRAY_LEN(routes),
    .claim = e2b_claim,
    .error = put_error,
    .cors_headers = cors_any_header,
    .once = once,
    .nonce = ARRAY_LEN(once),
    .operations = operations,
    .noperations = ARRAY_LEN(operations),
};
