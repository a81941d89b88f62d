#include <errno.h>
#include <string.h>

#include "core/volume.h"
#include "front/http/fields.h"
#include "front/native/native.h"
#include "front/native/paging.h"

#define MIB (1024ull * 1024)

struct ask {
    char *name;
    uint64_t size_bytes;
};

static const struct field create_fields[] = {
    FIELD(struct ask, name, "name", as_text, .max = NAME_MAX_LEN, .null_ok = true),
    FIELD(struct ask, size_bytes, "size_mb", as_mib, .min = VOLUME_SIZE_MB_MIN,
          .max = VOLUME_SIZE_MB_MAX),
};
static const struct field update_fields[] = {
    FIELD(struct ask, size_bytes, "size_mb", as_mib, .min = VOLUME_SIZE_MB_MIN,
          .max = VOLUME_SIZE_MB_MAX),
};

/* ---- the volumes of a sandbox ---- */

struct mount_ask {
    char *volume, *path;
    bool read_only;
};
static const struct field mount_fields[] = {
    FIELD(struct mount_ask, volume, "volume", as_text, .max = NAME_MAX_LEN),
    FIELD(struct mount_ask, path, "path", as_text, .max = MOUNT_PATH_SIZE - 1),
    FIELD(struct mount_ask, read_only, "read_only", as_bool),
};

static int add_mount(struct sandbox_spec *spec, const json_t *o, const struct field *f,
                     struct err *err)
{
    struct mount_ask m = { 0 };
    uint32_t seen;
    if (!json_is_object(o))
        return err_name(err, EINVAL, "invalid_field", "'%s' must be a list of objects", f->name);
    int r = fields_decode(o, mount_fields, ARRAY_LEN(mount_fields), &m, &seen, err);
    if (r >= 0 && (!m.volume || !m.path))
        r = err_name(err, EINVAL, "missing_field", "one of '%s' lacks its 'volume' or its 'path'",
                     f->name);
    if (r >= 0)
        r = spec_add_mount(spec, m.volume, m.path, m.read_only, err);
    free(m.volume);
    free(m.path);
    return r;
}

int native_as_mounts(const json_t *v, const struct field *f, void *at, struct err *err)
{
    struct sandbox_spec *spec = container_of(at, struct sandbox_spec, mounts);
    if (!json_is_array(v))
        return err_name(err, EINVAL, "invalid_field", "'%s' must be a list of objects", f->name);
    int r = 0;
    for (size_t i = 0; i < json_array_size(v) && r >= 0; i++)
        r = add_mount(spec, json_array_get(v, i), f, err);
    return r;
}

void native_put_mounts(struct jout *j, const struct sandbox_spec *spec)
{
    jout_open(j, "volumes", '[');
    for (size_t i = 0; i < spec->n_mounts; i++) {
        const struct sandbox_mount *m = &spec->mounts[i];
        jout_open(j, NULL, '{');
        jout_str(j, "volume", m->name);
        jout_str(j, "id", m->volume);
        jout_str(j, "path", m->path);
        jout_bool(j, "read_only", m->read_only);
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

/* ---- volumes themselves ---- */

static void put_volume(struct jout *j, const struct volume *v, const uint64_t *used)
{
    jout_open(j, NULL, '{');
    jout_str(j, "id", v->id);
    jout_str(j, "name", v->name);
    jout_uint(j, "size_mb", v->size_bytes / MIB);
    if (used)
        jout_uint(j, "used_bytes", *used);
    jout_uint(j, "sandboxes", v->sandboxes);
    jout_time(j, "created_at", v->created_ms);
    jout_close(j, '}');
}

static int reply_volume(struct request *req, unsigned status, const struct volume *v,
                        struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    uint64_t used = 0;
    int r = volume_used(req->core, v->id, &used, err);
    if (r < 0)
        return r;
    put_volume(&j, v, &used);
    return reply_json(req, status, &j);
}

static int read_ask(struct request *req, const struct field *fields, size_t n, struct ask *ask,
                    struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    uint32_t seen;
    int r = request_json(req, &object, err);
    return r < 0 ? r : fields_decode(object, fields, n, ask, &seen, err);
}

int native_volume_create(struct request *req, struct err *err)
{
    struct ask ask = { .size_bytes = VOLUME_SIZE_MB * MIB };
    struct volume v;
    int r = read_ask(req, create_fields, ARRAY_LEN(create_fields), &ask, err);
    if (r >= 0)
        r = volume_create(req->core, req->owner, ask.name, ask.size_bytes, &v, err);
    free(ask.name);
    return r < 0 ? r : reply_volume(req, 201, &v, err);
}

int native_volume_list(struct request *req, struct err *err)
{
    static const char *const known[] = { "limit", "cursor", NULL };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    _cleanup_free_ struct volume *list = NULL;
    struct jout j = JOUT_INIT(&b);
    struct paging page;
    size_t n = 0;
    int r = request_params_known(req, known, err);
    if (r >= 0)
        r = paging_read(req, &page, err);
    if (r >= 0)
        r = volume_list(req->core, req->owner, &list, &n, err);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    jout_open(&j, "volumes", '[');
    for (size_t i = 0; i < n; i++) {
        char key[64];
        (void)snprintf(key, sizeof(key), "%016llx-%s", (unsigned long long)list[i].created_ms,
                       list[i].id);
        if (paging_takes(&page, key))
            put_volume(&j, &list[i], NULL);
    }
    jout_close(&j, ']');
    paging_put(&page, &j);
    jout_close(&j, '}');
    return reply_json(req, 200, &j);
}

int native_volume_get(struct request *req, struct err *err)
{
    struct volume v;
    int r = volume_get(req->core, req->owner, req->args[0], &v, err);
    return r < 0 ? r : reply_volume(req, 200, &v, err);
}

int native_volume_update(struct request *req, struct err *err)
{
    struct ask ask = { 0 };
    struct volume v;
    int r = read_ask(req, update_fields, ARRAY_LEN(update_fields), &ask, err);
    if (r < 0)
        return r;
    r = ask.size_bytes ? volume_resize(req->core, req->owner, req->args[0], ask.size_bytes, &v, err)
                       : volume_get(req->core, req->owner, req->args[0], &v, err);
    return r < 0 ? r : reply_volume(req, 200, &v, err);
}

int native_volume_delete(struct request *req, struct err *err)
{
    int r = volume_remove(req->core, req->owner, req->args[0], err);
    return r < 0 ? r : reply_empty(req);
}
