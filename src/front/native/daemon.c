#include <errno.h>
#include <limits.h>
#include <string.h>

#include "core/disk.h"
#include "core/host.h"
#include "front/http/server.h"
#include "front/native/native.h"

#define URL_MAX 128 /* a scheme, an address and a port */

int native_health(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    struct core_counts counts;
    struct disk_reading disk;
    bool keeper = host_has_keeper(req->core);

    core_counts(req->core, &counts);
    disk_last(req->core, &disk);
    jout_open(&j, NULL, '{');
    jout_str(&j, "status", keeper ? "ok" : "degraded");
    jout_str(&j, "version", WARREN_VERSION);
    jout_bool(&j, "keeper", keeper);
    jout_uint(&j, "sandboxes", (uint64_t)counts.running + counts.stopped);
    jout_str(&j, "disk", disk_level_name(disk.level));
    jout_close(&j, '}');
    return reply_json(req, keeper ? 200 : 503, &j);
}

/* How full each area is (core/disk.h), read now. */
static void put_disk(struct core *core, struct jout *j)
{
    struct disk_reading d;
    disk_look(core);
    disk_last(core, &d);
    jout_open(j, "disk", '{');
    for (int i = 0; i < DISK_AREAS; i++) {
        const struct disk_room *a = &d.areas[i];
        if (a->size == 0)
            continue;
        jout_open(j, disk_area_name((enum disk_area)i), '{');
        jout_uint(j, "size_bytes", a->size);
        jout_uint(j, "free_bytes", a->free);
        jout_uint(j, "reserve_bytes", a->reserve);
        jout_str(j, "level", disk_level_name(a->level));
        jout_close(j, '}');
    }
    jout_close(j, '}');
}

static void put_url(struct jout *j, const char *scheme, const char *where)
{
    char url[URL_MAX];
    if (where && snprintf(url, sizeof(url), "%s://%s", scheme, where) < (int)sizeof(url))
        jout_str(j, NULL, url);
}

int native_host(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(8192);
    struct jout j = JOUT_INIT(&b);
    struct host h;

    int r = host_look(req->core, &h, err);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    jout_str(&j, "version", WARREN_VERSION);
    jout_str(&j, "kernel", h.kernel);
    jout_str(&j, "machine", h.machine);
    jout_open(&j, "listen", '[');
    put_url(&j, "http", req->listen);
    put_url(&j, "https", req->tls_listen);
    jout_close(&j, ']');
    jout_uint(&j, "cpus", h.cpus);
    jout_uint(&j, "memory_bytes", h.memory_bytes);
    jout_uint(&j, "memory_free_bytes", h.memory_free_bytes);
    jout_uint(&j, "pool_total_bytes", h.pool_bytes);
    jout_uint(&j, "pool_free_bytes", h.pool_free_bytes);
    jout_str(&j, "data_dir", core_data_name(req->core));
    put_disk(req->core, &j);
    jout_str(&j, "criu", h.criu);
    jout_open(&j, "features", '{');
    for (size_t i = 0; i < h.n_features; i++)
        jout_bool(&j, h.features[i].name, h.features[i].here);
    jout_close(&j, '}');
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

int native_backup(struct request *req, struct err *err)
{
    if (!req->admin)
        return err_fail(err, FAIL_FORBIDDEN,
                        "only the operator makes backups; ask for an admin's key");
    _cleanup_(buf_done) struct buf b = BUF_INIT(8192);
    struct jout j = JOUT_INIT(&b);
    char path[PATH_MAX];
    int r = core_copy_state(req->core, err);
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "%s/state/warren.db.copy", core_data_name(req->core));
    jout_open(&j, NULL, '{');
    jout_str(&j, "state", path);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

int native_metrics(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(1024 * 1024);
    struct connections_counts connections;
    server_connections(req->server, &connections);
    int r = metrics_text(req->metrics, req->core, &connections, &b);
    if (r < 0)
        return err_set(err, -r, "cannot write the metrics");
    return reply_text(req, 200, "text/plain; version=0.0.4; charset=utf-8", &b);
}
