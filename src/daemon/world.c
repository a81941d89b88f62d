#include "daemon/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "base/log.h"
#include "core/archive.h"
#include "core/certs.h"
#include "core/core.h"
#include "core/process.h"
#include "core/watches.h"
#include "front/e2b/e2b.h"
#include "front/http/server.h"
#include "front/native/native.h"
#include "daemon/previews.h"
#include "daemon/walls.h"

#define LOG_MODULE "warrend"
#define DRAIN_MS 5000
#define FILES_OTHER 4096 /* descriptors beside those of connections */
#define KEEPER_STOP_MS 5000

static int start_certs(struct world *w, struct err *err)
{
    char state[WORLD_REF_MAX + 8];
    struct certs_config config = { .state = state,
                                   .domain = w->domain,
                                   .own_default = !w->options.tls_cert,
                                   .dir = w->options.tls_certs,
                                   .acme_directory = w->options.acme_directory,
                                   .acme_email = w->options.acme_email,
                                   .acme_hook_fd = w->hook_fd };
    (void)snprintf(state, sizeof(state), "%s/state", w->data_ref);
    return w->tls_fd < 0 ? 0 : certs_start(w->core, &config, err);
}

static int start_core(struct world *w, struct err *err)
{
    const struct archive_config archive = { .bucket = w->archive_bucket,
                                            .prefix = w->archive_prefix,
                                            .endpoint = w->archive_endpoint,
                                            .region = w->options.archive_region,
                                            .key_id = w->archive_keys.key_id,
                                            .secret = w->archive_keys.secret,
                                            .token = w->archive_keys.token,
                                            .ca_file = w->options.archive_ca };
    struct core_config config = { .archive = &archive,
                                  .data_dir = w->data_ref,
                                  .data_name = w->data,
                                  .run_dir = w->run_ref,
                                  .first_key = w->first_key,
                                  .memory_promise_mb = options_memory_promise_mb(&w->options),
                                  .disk_reserve_mb = w->options.disk_reserve_mb,
                                  .pool_size = w->options.pool_size,
                                  .usage_interval_ms = w->options.usage_interval_s * 1000ll,
                                  .usage_keep_days = w->options.usage_keep_days,
                                  .archive_fd = w->archive_fd,
                                  .broker_fd = w->link_fd,
                                  .network_limits = w->options.network_limits,
                                  .network_limits_most = w->options.network_limits_max,
                                  .default_registry = w->options.default_registry,
                                  .registry_allow = w->options.registry_allow,
                                  .registry_timeout_s = w->options.registry_timeout_s,
                                  .layer_bytes = (uint64_t)w->options.layer_mb << 20,
                                  .layer_ratio = w->options.layer_ratio,
                                  .api_names = w->options.api_names,
                                  .egress_open = w->options.egress_open,
                                  .share_volumes = w->options.share_volumes_always };
    int r = core_new(&config, &w->core, err);
    s3_credentials_done(&w->archive_keys); /* the core has them */
    return r;
}

static int start_server(struct world *w, struct err *err)
{
    static const struct dialect *const dialects[] = { &e2b_dialect, &native_dialect, NULL };
    struct server_config http = { .core = w->core,
                                  .dialects = dialects,
                                  .tcp_fd = take_fd(w->tcp_fd),
                                  .admin_fd = take_fd(w->admin_fd),
                                  .connections = { w->options.conns, w->options.conns_per_address,
                                                   w->options.conns_per_key,
                                                   w->options.conns_without_key },
                                  .rate_limit = w->options.rate,
                                  .rate_burst = w->options.burst,
                                  .cors_origins = w->options.cors_origins,
                                  .keeper_restarts = w->keeper.restarts,
                                  .listen = w->where,
                                  .tls_listen = w->tls_where[0] ? w->tls_where : NULL,
                                  .preview_domain = w->address,
                                  .preview_tls = w->preview_tls,
                                  .divert = previews_divert,
                                  .divert_arg = w->previews };
    return server_new(&http, &w->server, err);
}

/* Raise the limit of descriptors: each connection has one and may need another inside a sandbox.
 * The keeper was started before, so sandboxes inherit the old limit. */
static void make_room(struct world *w)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return;
    rlim_t want = 2 * (rlim_t)w->options.conns + FILES_OTHER;
    const struct rlimit more = { want > files.rlim_cur ? want : files.rlim_cur,
                                 want > files.rlim_max ? want : files.rlim_max };
    const struct rlimit most = { files.rlim_max, files.rlim_max };
    if (setrlimit(RLIMIT_NOFILE, &more) < 0)
        (void)setrlimit(RLIMIT_NOFILE, &most);
    (void)getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur / 2 >= w->options.conns)
        return;
    w->options.conns = (unsigned)(files.rlim_cur / 2);
    log_warn("the limit of open files leaves room for fewer connections limit=%llu connections=%u",
             (unsigned long long)files.rlim_cur, w->options.conns);
}

int world_start(struct world *w, struct err *err)
{
    int r = world_start_children(w, err);
    make_room(w);
    if (r >= 0)
        r = walls_bound(err);
    if (r >= 0)
        r = setup_drop(&w->user, err);
    if (r >= 0)
        r = walls_enter(&w->options, w->data, w->run, err);
    if (r >= 0)
        r = start_core(w, err);
    if (r >= 0)
        r = start_certs(w, err);
    if (r >= 0)
        r = previews_new(w->core, take_fd(w->link_fd), w->domain, &w->previews, err);
    if (r >= 0)
        r = start_server(w, err);
    return r < 0 ? r : previews_start(w->previews, w->server, err);
}

void world_done(struct world *w)
{
    if (w->server)
        server_stop(w->server, DRAIN_MS);
    previews_stop(w->previews);
    process_watch_stop();
    watches_stop(w->core);
    server_free(w->server);
    previews_free(w->previews);
    core_free(w->core);
    child_stop(&w->broker, KEEPER_STOP_MS);
    child_stop(&w->keeper, KEEPER_STOP_MS);
    cleanup_close(&w->link_fd);
    cleanup_close(&w->tls_fd);
    cleanup_close(&w->tcp_fd);
    cleanup_close(&w->admin_fd);
    cleanup_close(&w->lock_fd);
    cleanup_close(&w->data_fd);
    cleanup_close(&w->run_fd);
    cleanup_close(&w->archive_fd);
    cleanup_close(&w->hook_fd);
    options_done(&w->options);
    s3_credentials_done(&w->archive_keys);
    free(w->archive_bucket);
    free(w->archive_prefix);
    free(w->archive_endpoint);
    free(w->data);
    free(w->run);
    if (w->first_key)
        explicit_bzero(w->first_key, strlen(w->first_key));
    free(w->first_key);
}
