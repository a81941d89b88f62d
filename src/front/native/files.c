#include "front/native/files.h"

#include <errno.h>
#include <string.h>

static int volume_error(int r, struct err *err)
{
    if (err->failure == FAIL_NO_SPACE)
        return err_fail(err, FAIL_NO_SPACE, "the volume is full: remove files, or raise 'size_mb'");
    if (err->failure == FAIL_SANDBOX_NOT_RUNNING)
        return err_fail(err, FAIL_VOLUME_IN_USE,
                        "the volume was removed, or the way to it was cut; try again");
    return r;
}

int files_error(struct request *req, int r, struct err *err)
{
    if (native_is_volume(req))
        return volume_error(r, err);
    if (err->failure == FAIL_NO_SPACE)
        (void)err_fail(err, FAIL_NO_SPACE,
                       "the sandbox's disk limit is reached: remove files, or raise 'disk_mb'");
    return native_sandbox_error(req, r, err);
}

int files_query(struct request *req, const char *const *known, struct files_query *ret_q,
                struct err *err)
{
    int r = request_params_known(req, known, err);
    if (r < 0)
        return r;
    const char *path = uri_param(&req->uri, "path");
    if (!path || !*path)
        return err_fail(err, FAIL_INVALID_QUERY, "'path' is needed: ?path=/some/file");
    if (strlen(path) >= FILES_PATH_MAX)
        return err_fail(err, FAIL_NAME_TOO_LONG, "'path' is over %d bytes", FILES_PATH_MAX - 1);
    *ret_q = (struct files_query){ path, uri_param(&req->uri, "user") };
    return 0;
}

int files_query_flags(const struct request *req, const struct files_flag *flags, size_t n,
                      uint64_t *io_flags, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        bool v = flags[i].inverted;
        int r = request_param_bool(req, flags[i].name, &v, err);
        if (r < 0)
            return r;
        if (v != flags[i].inverted)
            *io_flags |= flags[i].flag;
    }
    return 0;
}

int files_mode_parse(const char *text, uint64_t *ret_mode)
{
    uint64_t mode = 0;
    size_t n = strlen(text);
    if (n < 1 || n > 5)
        return -EINVAL;
    for (; *text; text++) {
        if (*text < '0' || *text > '7')
            return -EINVAL;
        mode = mode * 8 + (uint64_t)(*text - '0');
    }
    if (mode > 07777)
        return -EINVAL;
    *ret_mode = mode;
    return 0;
}

/* ---- tags ---- */

const char *files_etag(const struct file_entry *e, char out[FILES_ETAG_MAX])
{
    int n = snprintf(out, FILES_ETAG_MAX, "\"%s\"", e->etag ? e->etag : "");
    bool plain = n > 2 && n < FILES_ETAG_MAX;
    for (const char *p = e->etag; plain && *p; p++)
        plain = *p > ' ' && *p < 0x7f && *p != '"'; /* it goes into a header */
    if (!plain)
        out[0] = '\0';
    return out;
}

int files_etag_parse(const char *header, char out[FILES_ETAG_MAX])
{
    size_t n = strlen(header);
    if (strcmp(header, "*") == 0) {
        memcpy(out, "*", 2);
        return 0;
    }
    if (n < 3 || n - 2 >= FILES_ETAG_MAX || header[0] != '"' ||
        strchr(header + 1, '"') != header + n - 1)
        return -EINVAL;
    memcpy(out, header + 1, n - 2);
    out[n - 2] = '\0';
    return 0;
}

bool files_etag_listed(const char *header, const struct file_entry *e)
{
    char tag[FILES_ETAG_MAX];
    if (!header)
        return false;
    if (strcmp(header, "*") == 0)
        return true;
    return files_etag(e, tag)[0] && strstr(header, tag); /* the quotes keep it whole */
}

/* ---- entries ---- */

static const char *type_name(enum wire_file_type type)
{
    switch (type) {
    case WIRE_REGULAR:
    case WIRE_HARDLINK: return "file";
    case WIRE_DIRECTORY: return "directory";
    case WIRE_SYMLINK: return "symlink";
    case WIRE_FIFO: return "fifo";
    case WIRE_SOCKET: return "socket";
    case WIRE_CHARDEV: return "chardev";
    case WIRE_BLOCKDEV: return "blockdev";
    }
    return "file";
}

static void put_mode(struct jout *j, unsigned mode)
{
    static const char letters[] = "rwxrwxrwx";
    char octal[8], text[10];
    (void)snprintf(octal, sizeof(octal), "%04o", mode & 07777u);
    jout_str(j, "mode", octal);
    for (int i = 0; i < 9; i++)
        text[i] = mode & (0400u >> i) ? letters[i] : '-';
    text[9] = '\0';
    if (mode & 04000)
        text[2] = text[2] == 'x' ? 's' : 'S';
    if (mode & 02000)
        text[5] = text[5] == 'x' ? 's' : 'S';
    if (mode & 01000)
        text[8] = text[8] == 'x' ? 't' : 'T';
    jout_str(j, "permissions", text);
}

void files_put_entry(struct jout *j, const char *key, const struct file_entry *e)
{
    char etag[FILES_ETAG_MAX];
    const char *path = e->path ? e->path : "";
    const char *slash = strrchr(path, '/');

    jout_open(j, key, '{');
    jout_str(j, "name", slash && slash[1] ? slash + 1 : path);
    jout_str(j, "path", path);
    jout_str(j, "type", type_name(e->type));
    jout_uint(j, "size", e->size);
    put_mode(j, e->mode);
    jout_uint(j, "uid", e->uid);
    jout_uint(j, "gid", e->gid);
    jout_str(j, "owner", e->owner);
    jout_str(j, "group", e->group);
    jout_time(j, "modified_at", e->mtime_ns / 1000000);
    jout_time(j, "accessed_at", e->atime_ns / 1000000);
    jout_time(j, "changed_at", e->ctime_ns / 1000000);
    jout_uint(j, "inode", e->inode);
    jout_uint(j, "links", e->nlink);
    jout_uint(j, "disk_bytes", e->blocks_bytes);
    jout_str(j, "target", e->link);
    jout_str(j, "etag", e->etag ? files_etag(e, etag) : NULL);
    jout_close(j, '}');
}

int files_reply_do(struct request *req, const struct file_ask *ask, unsigned status,
                   struct err *err)
{
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    _cleanup_(file_entry_done) struct file_entry e = { 0 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(REPLY_MAX);
    struct jout j = JOUT_INIT(&b);
    struct file_event done;

    int r = native_enter(req, &visit, err);
    if (r >= 0)
        r = file_do(req->core, &visit.s, ask, &e, &done, err);
    if (r < 0)
        return files_error(req, r, err);
    if (ask->op == WIRE_FILE_MKDIR && done.count == 0)
        status = 200; /* it was there */
    files_put_entry(&j, NULL, &e);
    return reply_json(req, status, &j);
}
