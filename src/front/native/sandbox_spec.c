/* What a client asks a sandbox to be: the fields of POST and PATCH. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/spec.h"
#include "core/template.h"
#include "front/http/fields.h"
#include "front/native/native.h"

#define TIMEOUT_MAX_S (10.0 * 366 * 86400) /* ten years */

const char *const native_previews[] = {
    [PREVIEW_PUBLIC] = "public", [PREVIEW_PRIVATE] = "private", NULL
};
const char *const native_wakes[] = {
    [WAKE_AUTO] = "auto", [WAKE_ALWAYS] = "always", [WAKE_NEVER] = "never", NULL
};

const char *const native_restarts[] = {
    [RESTART_NO] = "no", [RESTART_ON_BOOT] = "on-boot", [RESTART_ALWAYS] = "always", NULL
};

#define ROW(member_, name_, ...) FIELD(struct sandbox_spec, member_, name_, __VA_ARGS__)
static const struct field create_fields[] = {
    ROW(template, "template", as_text, .max = TEMPLATE_REF_SIZE - 1, .null_ok = true),
    ROW(image, "image", as_text, .max = 128),
    ROW(name, "name", as_text, .max = NAME_MAX_LEN, .null_ok = true),
    ROW(cpu_millis, "cpus", as_thousandths, .min = 0.05, .max = 4096),
    ROW(memory_bytes, "memory_mb", as_mib, .min = 16, .max = 1048576),
    ROW(disk_bytes, "disk_mb", as_mib, .min = 16, .max = 16777216),
    ROW(pids, "pids", as_u32, .min = 4, .max = 32768),
    ROW(nofile, "nofile", as_u32, .min = 16, .max = 1048576),
    ROW(env, "env", as_env),
    ROW(metadata, "metadata", as_pairs),
    ROW(user, "user", as_text, .max = 256, .null_ok = true),
    ROW(workdir, "workdir", as_text, .max = 4096, .null_ok = true),
    ROW(timeout_ms, "timeout_s", as_seconds, .max = TIMEOUT_MAX_S, .null_ok = true),
    ROW(on_timeout, "on_timeout", as_choice, .choices = sandbox_ends),
    ROW(idle_timeout_ms, "idle_timeout_s", as_seconds, .max = TIMEOUT_MAX_S, .null_ok = true),
    ROW(on_idle, "on_idle", as_choice, .choices = sandbox_ends),
    ROW(freeze_after_ms, "freeze_after_s", as_seconds, .max = TIMEOUT_MAX_S, .null_ok = true),
    ROW(autosave, "checkpoints", native_as_autosave, .null_ok = true),
    ROW(mounts, "volumes", native_as_mounts),
    ROW(network, "network", native_as_network),
    ROW(bindings, "bindings", native_as_bindings, .null_ok = true),
    ROW(network_limits, "network_limits", native_as_network_limits, .null_ok = true),
    ROW(preview, "preview", as_choice, .choices = native_previews),
    ROW(wake, "wake", as_choice, .choices = native_wakes),
    ROW(restart, "restart", as_choice, .choices = native_restarts),
};

/* Rows of the same table that PATCH takes, and what each of them changes. */
static const struct {
    const char *name;
    unsigned change;
} changes[] = {
    { "name", CHANGE_NAME },
    { "cpus", CHANGE_LIMITS },
    { "memory_mb", CHANGE_LIMITS },
    { "disk_mb", CHANGE_LIMITS },
    { "pids", CHANGE_LIMITS },
    { "env", CHANGE_ENV },
    { "metadata", CHANGE_METADATA },
    { "timeout_s", CHANGE_TIMEOUT },
    { "on_timeout", CHANGE_ON_TIMEOUT },
    { "idle_timeout_s", CHANGE_IDLE },
    { "on_idle", CHANGE_ON_IDLE },
    { "freeze_after_s", CHANGE_FREEZE },
    { "checkpoints", CHANGE_AUTOSAVE },
    { "network", CHANGE_NETWORK },
    { "bindings", CHANGE_BINDINGS },
    { "network_limits", CHANGE_NETWORK_LIMITS },
    { "preview", CHANGE_PREVIEW },
    { "wake", CHANGE_WAKE },
    { "restart", CHANGE_RESTART },
};

static int check_cpus(uint32_t cpu_millis, struct err *err)
{
    long host = sysconf(_SC_NPROCESSORS_ONLN);
    if (host > 0 && cpu_millis > (uint64_t)host * 4000)
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'cpus' must be at most %ld, four times what this host has", host * 4);
    return 0;
}

static int check_workdir(const char *workdir, struct err *err)
{
    if (workdir && workdir[0] != '/')
        return err_fail(err, FAIL_INVALID_FIELD, "'workdir' must be an absolute path");
    return 0;
}

static int changes_of(uint32_t seen, unsigned *ret_changes, struct err *err)
{
    unsigned all = 0;
    for (size_t i = 0; i < ARRAY_LEN(create_fields); i++) {
        if (!(seen & UINT32_C(1) << i))
            continue;
        size_t k = 0;
        while (k < ARRAY_LEN(changes) && strcmp(changes[k].name, create_fields[i].name) != 0)
            k++;
        if (k == ARRAY_LEN(changes))
            return err_fail(err, FAIL_INVALID_FIELD, "'%s' cannot be changed after creation",
                            create_fields[i].name);
        all |= changes[k].change;
    }
    *ret_changes = all;
    return 0;
}

int native_spec_read(struct request *req, struct sandbox_spec *spec, unsigned *ret_changes,
                     struct err *err)
{
    _cleanup_(template_done) struct template t = { 0 };
    _cleanup_json_ json_t *ask = NULL;
    uint32_t seen = 0;

    int r = request_json(req, &ask, err);
    const char *template = json_string_value(json_object_get(ask, "template"));
    if (r >= 0 && template && !ret_changes)
        r = template_begin(req->core, req->owner, template, &t, spec, err);
    if (r >= 0)
        r = fields_decode(ask, create_fields, ARRAY_LEN(create_fields), spec, &seen, err);
    if (r >= 0 && t.id[0])
        template_settle(&t, spec);
    if (r >= 0 && ret_changes)
        r = changes_of(seen, ret_changes, err);
    if (r >= 0)
        r = check_cpus(spec->cpu_millis, err);
    if (r >= 0)
        r = check_workdir(spec->workdir, err);
    return r;
}
