/* What a sandbox tells of itself: /envs and /metrics. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "front/e2b/e2b.h"
#include "front/e2b/envd.h"
#include "front/http/fields.h"

#define MIB (1024ull * 1024)

const char *e2b_template_of(const struct sandbox *s)
{
    return s->spec.template ? s->spec.template : s->spec.image;
}

int envd_put_env(const struct sandbox *s, struct pairs *env)
{
    int r = pairs_add(env, "E2B_SANDBOX", "true");
    if (r >= 0)
        r = pairs_add(env, "E2B_SANDBOX_ID", s->id);
    return r < 0 ? r : pairs_add(env, "E2B_TEMPLATE_ID", e2b_template_of(s));
}

int envd_tell_env(const struct sandbox *s, struct jout *j)
{
    struct pairs env = { 0 };
    int r = pairs_copy(&s->spec.env, &env);
    if (r >= 0)
        r = envd_put_env(s, &env); /* these are not the caller's to say */
    put_pairs(j, NULL, &env);
    pairs_done(&env);
    return r;
}

int envd_envs(struct request *req, struct err *err)
{
    _cleanup_(envd_leave) struct envd envd = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    int r = envd_enter(req, &envd, err);
    if (r != 0)
        return r < 0 ? r : 0;
    r = envd_tell_env(&envd.s, &j);
    if (r < 0)
        return err_set(err, -r, "cannot allocate an environment");
    reply_header(req, "Cache-Control", "%s", "no-store");
    return reply_json(req, 200, &j);
}

int envd_metrics(struct request *req, struct err *err)
{
    _cleanup_(envd_leave) struct envd envd = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    struct sandbox_usage u = { 0 };
    int r = envd_enter(req, &envd, err);
    if (r != 0)
        return r < 0 ? r : 0;
    r = sandbox_usage(req->core, envd.s.owner, envd.s.id, &u, err);
    if (r < 0)
        return r == -ENOENT ? envd_gone(req, envd.s.id) : r;
    int64_t now = clock_now_ms(), lived_us = (now - envd.s.started_ms) * 1000;
    const struct sandbox_spec *spec = &envd.s.spec;
    jout_open(&j, NULL, '{');
    jout_int(&j, "ts", now / 1000);
    jout_uint(&j, "cpu_count", (spec->cpu_millis + 999) / 1000);
    jout_thousandths(&j, "cpu_used_pct", lived_us > 0 ? u.cpu_us * 100000 / (uint64_t)lived_us : 0);
    jout_uint(&j, "mem_total_mib", spec->memory_bytes / MIB);
    jout_uint(&j, "mem_used_mib", u.memory_bytes / MIB);
    jout_uint(&j, "mem_total", spec->memory_bytes);
    jout_uint(&j, "mem_used", u.memory_bytes);
    jout_uint(&j, "mem_cache", 0);
    jout_uint(&j, "disk_used", u.disk_bytes);
    jout_uint(&j, "disk_total", spec->disk_bytes);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}
