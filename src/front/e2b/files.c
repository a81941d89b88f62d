/* GET /files: a file's bytes. */
#include <errno.h>
#include <string.h>

#include "core/file.h"
#include "front/e2b/files.h"
#include "front/e2b/signature.h"

struct download {
    struct envd envd;
    struct file_call *call;
    int fd;
};

int files_enter(struct request *req, const char *op, struct envd *ret_envd, struct err *err)
{
    char id[ID_SIZE];
    const char *header = request_header(req, "E2b-Sandbox-Id");
    const char *user = uri_param(&req->uri, "username");
    if (header && id_valid(header))
        memcpy(id, header, sizeof(id));
    else if (header || signature_find(req, op, id) < 0)
        return err_name(err, EACCES, "unauthorized",
                        "no sandbox is named, or the link is not signed for one that is here");
    *ret_envd = (struct envd){ 0 };
    int r = sandbox_enter(req->core, NULL, id, &ret_envd->s, err);
    if (r < 0)
        return -ENOTCONN;
    ret_envd->core = req->core;
    r = signature_check(req, &ret_envd->s, op, err);
    if (r >= 0 && user && snprintf(ret_envd->user, ENVD_USER_MAX, "%s", user) >= ENVD_USER_MAX)
        r = err_name(err, EACCES, "unauthorized", "invalid username");
    if (r < 0)
        envd_leave(ret_envd);
    return r;
}

int files_fail(struct request *req, int r, struct err *err)
{
    const char *id = request_header(req, "E2b-Sandbox-Id");
    if (r == -ENOTCONN || r == -ECONNRESET)
        return envd_gone(req, id ? id : "");
    if (err->what && strcmp(err->what, "user_not_found") == 0)
        return err_name(err, EACCES, "unauthorized", "invalid username: '%.64s'",
                        uri_param(&req->uri, "username") ? uri_param(&req->uri, "username") : "");
    return r;
}

static void download_free(void *arg)
{
    struct download *d = arg;
    file_call_free(d->call);
    envd_leave(&d->envd);
    free(d);
}

static ssize_t download_read(void *arg, char *out, size_t max)
{
    struct download *d = arg;
    return file_read(d->call, out, max, d->fd, NULL);
}

/* The entry, whose bytes then wait on the call. */
static int begin(struct download *d, struct request *req, struct file_entry *ret_e, struct err *err)
{
    const char *path = uri_param(&req->uri, "path");
    struct file_event ev;
    if (!path || !*path)
        return err_name(err, EINVAL, "invalid_query", "path is required");
    struct file_ask ask = { .op = WIRE_FILE_READ,
                            .user = *d->envd.user ? d->envd.user : NULL,
                            .paths = &path,
                            .n_paths = 1 };
    int r = file_begin(req->core, &d->envd.s, &ask, &d->call, err);
    if (r >= 0)
        r = file_next(d->call, -1, req->fd, &ev, err);
    if (r < 0)
        return r;
    if (ev.type != FILE_ENTRY) {
        file_event_done(&ev);
        return err_set(err, EPROTO, "a read was answered with something else");
    }
    *ret_e = ev.entry;
    return 0;
}

int envd_files_get(struct request *req, struct err *err)
{
    static const struct reply_reader reader = { download_read, download_free };
    _cleanup_(file_entry_done) struct file_entry e = { 0 };
    struct download *d = calloc(1, sizeof(*d));
    if (!d)
        return err_set(err, ENOMEM, "cannot allocate a download");
    d->fd = req->fd;
    int r = files_enter(req, "read", &d->envd, err);
    if (r >= 0)
        r = begin(d, req, &e, err);
    if (r < 0) {
        download_free(d);
        return files_fail(req, r, err);
    }
    reply_header(req, "Content-Disposition", "%s", "inline");
    return reply_bytes(req, 200, "application/octet-stream", e.length, &reader, d);
}
