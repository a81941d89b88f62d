/* A directory as one archive, out of a sandbox: packed while it is sent. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "core/archiver.h"
#include "front/native/files.h"

#define LOG_MODULE "files"
#define NAME_SHOWN 64

struct packing {
    struct native_visit visit;
    struct archiver *archiver;
    int fd;
};

static void packing_free(void *arg)
{
    struct packing *k = arg;
    archiver_free(k->archiver);
    native_leave(&k->visit);
    free(k);
}

/* The end of the bytes is the end of a whole archive only if the report says so; else the
 * connection is cut, so that nobody takes a part for the whole. */
static ssize_t read_end(struct packing *k)
{
    struct file_event ev;
    struct err err = ERR_INIT;
    int r = archiver_next(k->archiver, k->fd, &ev, &err);
    if (r < 0) {
        log_info("an archive was cut sandbox=%s code=%s", k->visit.s.id, failure_name(err.failure));
        return r;
    }
    file_event_done(&ev);
    return 0;
}

static ssize_t read_some(void *arg, char *out, size_t max)
{
    struct packing *k = arg;
    ssize_t n = archiver_read(k->archiver, out, max, k->fd);
    return n == 0 ? read_end(k) : n;
}

static const char *type_of(const char *format)
{
    if (strcmp(format, "tar.gz") == 0)
        return "application/gzip";
    if (strcmp(format, "tar.zst") == 0)
        return "application/zstd";
    return strcmp(format, "zip") == 0 ? "application/zip" : "application/x-tar";
}

/* The last part of the path, as far as it is plain enough for a header. */
static void put_name(struct request *req, const char *path, const char *format)
{
    char name[NAME_SHOWN + 1] = "files";
    size_t end = strlen(path), n = 0;
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t at = end;
    while (at > 0 && path[at - 1] != '/')
        at--;
    for (size_t i = at; i < end && n < NAME_SHOWN; i++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", path[i]))
            name[n++] = path[i];
    if (n > 0 && name[0] != '.')
        name[n] = '\0';
    else
        memcpy(name, "files", 6);
    reply_header(req, "Content-Disposition", "attachment; filename=\"%s.%s\"", name, format);
}

int files_reply_archive(struct request *req, const struct file_ask *ask, const char *format,
                        struct err *err)
{
    static const struct reply_reader reader = { read_some, packing_free };
    struct file_call *call = NULL;
    struct packing *k = calloc(1, sizeof(*k));
    if (!k)
        return err_set(err, ENOMEM, "cannot allocate an archive");
    k->fd = req->fd;
    int r = native_enter(req, &k->visit, err);
    if (r >= 0)
        r = file_begin(req->core, &k->visit.s, ask, &call, err);
    if (r >= 0)
        r = archiver_pack(req->core, call, format, req->fd, &k->archiver, err);
    if (r == -ENOTDIR && (ask->flags & WIRE_F_CONTENTS)) { /* a file by itself */
        struct file_ask file = *ask;
        file.flags &= ~(uint64_t)WIRE_F_CONTENTS;
        r = file_begin(req->core, &k->visit.s, &file, &call, err);
        if (r >= 0)
            r = archiver_pack(req->core, call, format, req->fd, &k->archiver, err);
    }
    if (r < 0) {
        packing_free(k);
        return files_error(req, r, err);
    }
    reply_header(req, "Cache-Control", "no-store");
    return reply_bytes(req, 200, type_of(format), REPLY_UNKNOWN, &reader, k);
}

int native_file_archive(struct request *req, struct err *err)
{
    static const char *const known[] = { "path", "user", "format", NULL };
    const char *format = uri_param(&req->uri, "format");
    struct files_query q;

    int r = files_query(req, known, &q, err);
    if (r < 0)
        return r;
    if (!format)
        format = "tar";
    if (!archiver_format_known(format, false))
        return err_fail(err, FAIL_INVALID_QUERY, "'format' must be tar, tar.gz, tar.zst or zip");
    struct file_ask ask = { .op = WIRE_FILE_TREE_OUT,
                            .user = q.user,
                            .paths = &q.path,
                            .n_paths = 1,
                            .flags =
                                WIRE_F_CONTENTS | (strcmp(format, "zip") == 0 ? WIRE_F_WHOLE : 0) };
    put_name(req, q.path, format);
    return files_reply_archive(req, &ask, format, err);
}
