#include <errno.h>
#include <string.h>

#include "core/volume.h"
#include "front/http/fields.h"
#include "front/native/native.h"
#include "front/native/page.h"

#define MIB (1024ull * 1024)

enum kind { KIND_FILES, KIND_BUCKET };
static const char *const kinds[] = { [KIND_FILES] = "files", [KIND_BUCKET] = "bucket", NULL };

struct ask {
    char *name;
    uint64_t size_bytes;
    enum kind kind;
    struct bucket bucket;
};

enum { ASKED_NAME, ASKED_SIZE, ASKED_KIND, ASKED_BUCKET };
static const struct field create_fields[] = {
    [ASKED_NAME] = FIELD(struct ask, name, "name", as_text, .max = NAME_MAX_LEN, .null_ok = true),
    [ASKED_SIZE] = FIELD(struct ask, size_bytes, "size_mb", as_mib, .min = VOLUME_SIZE_MB_MIN,
                         .max = VOLUME_SIZE_MB_MAX),
    [ASKED_KIND] = FIELD(struct ask, kind, "kind", as_choice, .choices = kinds),
    [ASKED_BUCKET] = FIELD(struct ask, bucket, "bucket", native_as_bucket),
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
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be a list of objects", f->name);
    int r = fields_decode(o, mount_fields, ARRAY_LEN(mount_fields), &m, &seen, err);
    if (r >= 0 && (!m.volume || !m.path))
        r = err_fail(err, FAIL_MISSING_FIELD, "one of '%s' lacks its 'volume' or its 'path'",
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
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be a list of objects", f->name);
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
    jout_str(j, "kind", kinds[volume_is_bucket(v)]);
    jout_uint(j, "size_mb", v->size_bytes / MIB);
    if (volume_is_bucket(v))
        native_put_bucket(j, "bucket", &v->bucket);
    if (used)
        jout_uint(j, "used_bytes", *used);
    jout_uint(j, "sandboxes", v->sandboxes);
    jout_time(j, "created_at", v->created_ms);
    jout_close(j, '}');
}

int native_reply_volume(struct request *req, unsigned status, const struct volume *v,
                        struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    uint64_t used = 0;
    int r = volume_is_bucket(v) ? 0 : volume_used(req->core, v->id, &used, err);
    if (r < 0)
        return r;
    put_volume(&j, v, volume_is_bucket(v) ? NULL : &used);
    return reply_json(req, status, &j);
}

static int create(struct request *req, const struct ask *ask, uint32_t seen, struct volume *ret_v,
                  struct err *err)
{
    bool described = seen & 1u << ASKED_BUCKET;
    if (ask->kind == KIND_FILES && !described)
        return volume_create(req->core, req->owner, ask->name, ask->size_bytes, ret_v, err);
    if (ask->kind != KIND_BUCKET || !described)
        return err_fail(
            err, described ? FAIL_INVALID_FIELD : FAIL_MISSING_FIELD,
            "a volume with a 'bucket' is of 'kind' \"bucket\", and the other way round");
    if (seen & 1u << ASKED_SIZE)
        return err_fail(err, FAIL_INVALID_FIELD, "a bucket has no 'size_mb' here");
    return volume_create_bucket(req->core, req->owner, ask->name, &ask->bucket, ret_v, err);
}

int native_volume_create(struct request *req, struct err *err)
{
    struct ask ask = { .size_bytes = VOLUME_SIZE_MB * MIB };
    struct volume v = { 0 };
    uint32_t seen = 0;
    int r = request_fields(req, create_fields, ARRAY_LEN(create_fields), &ask, &seen, err);
    if (r >= 0)
        r = create(req, &ask, seen, &v, err);
    free(ask.name);
    return r < 0 ? r : native_reply_volume(req, 201, &v, err);
}

int native_volume_list(struct request *req, struct err *err)
{
    _cleanup_(page_done) struct page page = { 0 };
    _cleanup_free_ struct volume *list = NULL;
    size_t n = 0;
    int r = page_read(req, NULL, &page, err);
    if (r >= 0)
        r = volume_list(req->core, req->owner, &list, &n, err);
    if (r < 0)
        return r;
    page_open(&page, "volumes");
    for (size_t i = 0; i < n; i++)
        if (page_takes_made(&page, list[i].created_ms, list[i].id))
            put_volume(&page.json, &list[i], NULL);
    return page_reply(req, &page);
}

int native_volume_get(struct request *req, struct err *err)
{
    struct volume v;
    int r = volume_get(req->core, req->owner, req->args[0], &v, err);
    return r < 0 ? r : native_reply_volume(req, 200, &v, err);
}

int native_volume_update(struct request *req, struct err *err)
{
    struct ask ask = { 0 };
    struct volume v;
    int r = request_fields(req, update_fields, ARRAY_LEN(update_fields), &ask, NULL, err);
    if (r < 0)
        return r;
    r = ask.size_bytes ? volume_resize(req->core, req->owner, req->args[0], ask.size_bytes, &v, err)
                       : volume_get(req->core, req->owner, req->args[0], &v, err);
    return r < 0 ? r : native_reply_volume(req, 200, &v, err);
}

int native_volume_delete(struct request *req, struct err *err)
{
    int r = volume_remove(req->core, req->owner, req->args[0], err);
    return r < 0 ? r : reply_empty(req);
}
