/* The control plane's volumes. What is in one is volume_content.c's. */
#include <errno.h>
#include <string.h>

#include "core/token.h"
#include "core/volume.h"
#include "front/e2b/e2b.h"
#include "front/e2b/volumes.h"

#define MIB (1024ull * 1024)

static void put_volume(struct request *req, struct jout *j, const struct volume *v, bool token)
{
    char text[TOKEN_SIZE];
    jout_open(j, NULL, '{');
    jout_str(j, "volumeID", v->id);
    jout_str(j, "name", v->name);
    if (token) {
        token_for(req->core, VOLUME_TOKEN, v->id, text);
        jout_str(j, "token", text);
    }
    jout_close(j, '}');
}

static int reply_volume(struct request *req, unsigned status, const struct volume *v)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    put_volume(req, &j, v, true);
    return reply_json(req, status, &j);
}

int e2b_volume_create(struct request *req, struct err *err)
{
    _cleanup_json_ json_t *object = NULL;
    struct volume v;
    int r = request_json(req, &object, err);
    if (r < 0)
        return r;
    const char *name = json_string_value(json_object_get(object, "name"));
    if (!name)
        return err_fail(err, FAIL_MISSING_FIELD, "name is required");
    r = volume_create(req->core, req->owner, name, VOLUME_SIZE_MB * MIB, &v, err);
    if (r < 0 && err->failure == FAIL_NAME_TAKEN)
        return err_fail(err, FAIL_INVALID_FIELD, "Volume with name '%.63s' already exists", name);
    return r < 0 ? r : reply_volume(req, 201, &v);
}

int e2b_volume_list(struct request *req, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    _cleanup_free_ struct volume *list = NULL;
    struct jout j = JOUT_INIT(&b);
    size_t n = 0;
    int r = volume_list(req->core, req->owner, &list, &n, err);
    if (r < 0)
        return r;
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < n; i++)
        put_volume(req, &j, &list[i], false);
    jout_close(&j, ']');
    return reply_json(req, 200, &j);
}

int e2b_volume_get(struct request *req, struct err *err)
{
    struct volume v;
    int r = volume_get(req->core, req->owner, req->args[0], &v, err);
    return r < 0 ? r : reply_volume(req, 200, &v);
}

int e2b_volume_delete(struct request *req, struct err *err)
{
    int r = volume_remove(req->core, req->owner, req->args[0], err);
    return r < 0 ? r : reply_empty(req);
}

/* ---- those of a sandbox ---- */

int e2b_read_mounts(const json_t *object, struct sandbox_spec *spec, struct err *err)
{
    const json_t *list = json_object_get(object, "volumeMounts");
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list))
        return err_fail(err, FAIL_INVALID_FIELD, "'volumeMounts' must be a list");
    int r = 0;
    for (size_t i = 0; i < json_array_size(list) && r >= 0; i++) {
        const json_t *m = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(m, "name"));
        const char *path = json_string_value(json_object_get(m, "path"));
        if (!name || !path)
            return err_fail(err, FAIL_INVALID_FIELD,
                            "each of 'volumeMounts' needs a name and a path");
        r = spec_add_mount(spec, name, path, false, err);
    }
    return r;
}

void e2b_put_mounts(struct jout *j, const struct sandbox_spec *spec)
{
    if (spec->n_mounts == 0)
        return;
    jout_open(j, "volumeMounts", '[');
    for (size_t i = 0; i < spec->n_mounts; i++) {
        jout_open(j, NULL, '{');
        jout_str(j, "name", spec->mounts[i].name);
        jout_str(j, "path", spec->mounts[i].path);
        jout_close(j, '}');
    }
    jout_close(j, ']');
}
