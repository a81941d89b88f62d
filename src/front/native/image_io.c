#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "core/image.h"
#include "front/http/fields.h"
#include "front/native/native.h"

#define LOG_MODULE "image"

/* ---- export ---- */

static int export_next(void *arg, struct buf *out)
{
    struct err err = ERR_INIT;
    int r = image_export_next(arg, out, &err);
    if (r < 0)
        log_warn("an export was cut short err=\"%s\"", err.msg);
    return r;
}

static void export_free(void *arg)
{
    image_export_free(arg);
}

int native_reply_export(struct request *req, struct image_export *exp)
{
    static const struct reply_source source = { export_next, export_free };
    return reply_stream(req, "application/x-tar", &source, exp);
}

int native_image_export(struct request *req, struct err *err)
{
    static const char *const known[] = { "format", NULL };
    struct image_export *exp = NULL;
    struct image image;
    int r = request_params_known(req, known, err);
    if (r < 0)
        return r;
    const char *format = uri_param(&req->uri, "format");
    bool docker = format && strcmp(format, "docker") == 0;
    if (format && !docker && strcmp(format, "oci") != 0)
        return err_fail(err, FAIL_INVALID_QUERY, "'format' must be oci or docker");
    r = image_resolve(req->core, req->owner, req->args[0], &image, NULL, err);
    if (r >= 0)
        r = image_export_begin(req->core, &image, docker ? IMAGE_DOCKER : IMAGE_OCI, &exp, err);
    return r < 0 ? r : native_reply_export(req, exp);
}

/* ---- commit ---- */

struct commit_body {
    char *name, *workdir, *user;
    char **cmd, **entrypoint;
    struct pairs env, labels;
};

static const struct field commit_fields[] = {
    FIELD(struct commit_body, name, "name", as_text, .max = IMAGE_NAME_MAX),
    FIELD(struct commit_body, cmd, "cmd", as_texts, .max = 0),
    FIELD(struct commit_body, entrypoint, "entrypoint", as_texts, .max = 0),
    FIELD(struct commit_body, env, "env", as_env, .max = 0),
    FIELD(struct commit_body, labels, "labels", as_pairs, .max = 0),
    FIELD(struct commit_body, workdir, "workdir", as_text, .max = 4095),
    FIELD(struct commit_body, user, "user", as_text, .max = 128),
};

static void commit_done(struct commit_body *b)
{
    free(b->name);
    free(b->workdir);
    free(b->user);
    strings_free(b->cmd);
    strings_free(b->entrypoint);
    pairs_done(&b->env);
    pairs_done(&b->labels);
}

int native_sandbox_commit(struct request *req, struct err *err)
{
    _cleanup_(commit_done) struct commit_body want = { 0 };
    struct image image;
    int r = request_fields(req, commit_fields, ARRAY_LEN(commit_fields), &want, NULL, err);
    if (r >= 0 && !want.name)
        r = err_fail(err, FAIL_MISSING_FIELD, "'name' is missing: what to call the image");
    if (r < 0)
        return r;
    struct image_changes changes = { .cmd = want.cmd,
                                     .entrypoint = want.entrypoint,
                                     .env = &want.env,
                                     .labels = &want.labels,
                                     .workdir = want.workdir,
                                     .user = want.user };
    r = image_commit(req->core, req->owner, req->args[0], want.name, &changes, &image, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    return native_reply_image(req, 201, &image, err);
}
