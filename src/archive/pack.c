#include "archive/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#include "archive/tree.h"
#include "base/fd.h"

#define BLOCK (256 * 1024)
#define ZIP_NAME "zip"

struct packing {
    struct archive *a;
    int out_fd, write_error;
    bool zip, in_entry; /* the DATA that comes belongs to the archive */
    uint64_t left;      /* of the entry's bytes */
    uint64_t files, bytes;
};

static la_ssize_t on_write(struct archive *a, void *ctx, const void *p, size_t n)
{
    struct packing *k = ctx;
    int r = fd_write_full(k->out_fd, p, n);
    if (r < 0) {
        k->write_error = r;
        archive_set_error(a, -r, "the reader went away");
        return ARCHIVE_FATAL;
    }
    return (la_ssize_t)n;
}

static int failed(struct packing *k, struct err *err)
{
    if (k->write_error)
        return err_set(err, EPIPE, "nobody takes the archive");
    return err_set(err, EIO, "cannot write the archive: %s", archive_error_string(k->a));
}

static int open_archive(struct packing *k, const char *format, struct err *err)
{
    int r = ARCHIVE_OK;
    k->a = archive_write_new();
    if (!k->a)
        return err_set(err, ENOMEM, "cannot allocate an archive");
    k->zip = strcmp(format, ZIP_NAME) == 0;
    if (strcmp(format, "tar.gz") == 0)
        r = archive_write_add_filter_gzip(k->a);
    else if (strcmp(format, "tar.zst") == 0)
        r = archive_write_add_filter_zstd(k->a);
    else if (!k->zip && strcmp(format, "tar") != 0)
        return err_set(err, EINVAL, "there is no format '%s'", format);
    if (r == ARCHIVE_OK)
        r = k->zip ? archive_write_set_format_zip(k->a)
                   : archive_write_set_format_pax_restricted(k->a);
    if (strcmp(format, "tar.gz") == 0) /* it is made while somebody waits */
        (void)archive_write_set_filter_option(k->a, "gzip", "compression-level", "1");
    if (r == ARCHIVE_OK)
        r = archive_write_set_bytes_per_block(k->a, BLOCK);
    if (r == ARCHIVE_OK)
        r = archive_write_set_bytes_in_last_block(k->a, 1);
    if (r == ARCHIVE_OK)
        r = archive_write_open(k->a, k, NULL, on_write, NULL);
    return r == ARCHIVE_OK ? 0 : failed(k, err);
}

static unsigned file_type(enum wire_file_type type)
{
    switch (type) {
    case WIRE_REGULAR:
    case WIRE_HARDLINK: return AE_IFREG;
    case WIRE_DIRECTORY: return AE_IFDIR;
    case WIRE_SYMLINK: return AE_IFLNK;
    case WIRE_FIFO: return AE_IFIFO;
    case WIRE_SOCKET: return AE_IFSOCK;
    case WIRE_CHARDEV: return AE_IFCHR;
    case WIRE_BLOCKDEV: return AE_IFBLK;
    }
    return AE_IFREG;
}

static int write_entry(struct packing *k, const struct tree_entry *e, struct err *err)
{
    bool plain = e->type == WIRE_REGULAR || e->type == WIRE_DIRECTORY || e->type == WIRE_SYMLINK;
    k->left = e->type == WIRE_REGULAR ? e->size : 0;
    k->in_entry = e->type != WIRE_SOCKET && (plain || !k->zip);
    const char *path = e->path + strspn(e->path, "/");
    if (!k->in_entry || !*path)
        return 0; /* no archive holds one */
    struct archive_entry *ae = archive_entry_new();
    if (!ae)
        return err_set(err, ENOMEM, "cannot allocate an entry");
    archive_entry_set_pathname(ae, path);
    archive_entry_set_filetype(ae, file_type(e->type));
    archive_entry_set_perm(ae, (mode_t)e->mode);
    archive_entry_set_uid(ae, (la_int64_t)e->uid);
    archive_entry_set_gid(ae, (la_int64_t)e->gid);
    archive_entry_set_uname(ae, e->owner);
    archive_entry_set_gname(ae, e->group);
    if (e->has_mtime)
        archive_entry_set_mtime(ae, e->mtime_ns / 1000000000, (long)(e->mtime_ns % 1000000000));
    if (e->type == WIRE_REGULAR)
        archive_entry_set_size(ae, (la_int64_t)e->size);
    if (e->type == WIRE_SYMLINK)
        archive_entry_set_symlink(ae, e->link ? e->link : "");
    if (e->type == WIRE_HARDLINK)
        archive_entry_set_hardlink(ae, e->link ? e->link + strspn(e->link, "/") : "");
    if (e->type == WIRE_CHARDEV || e->type == WIRE_BLOCKDEV)
        archive_entry_set_rdev(ae, (dev_t)e->rdev);
    int r = archive_write_header(k->a, ae);
    archive_entry_free(ae);
    k->files += e->type == WIRE_REGULAR || e->type == WIRE_HARDLINK;
    if (r == ARCHIVE_FAILED) {
        k->in_entry = false; /* this one does not fit the format; the others do */
        return 0;
    }
    return r < ARCHIVE_WARN ? failed(k, err) : 0;
}

static int write_data(struct packing *k, const struct buf *data, struct err *err)
{
    if (data->len > k->left)
        return err_set(err, EPROTO, "an entry has more bytes than it said");
    k->left -= data->len;
    k->bytes += data->len;
    if (!k->in_entry)
        return 0;
    la_ssize_t n = archive_write_data(k->a, data->data, data->len);
    return n < 0 || (size_t)n != data->len ? failed(k, err) : 0;
}

static int finish(struct packing *k, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(256);
    if (archive_write_close(k->a) < ARCHIVE_WARN)
        return failed(k, err);
    (void)wire_put_u64(&b, WIRE_T_FILES, k->files);
    (void)wire_put_u64(&b, WIRE_T_BYTES, k->bytes);
    tree_report_frame(WIRE_OK, &b);
    return 1;
}

static int step(struct packing *k, uint8_t type, const struct buf *payload, struct err *err)
{
    _cleanup_(buf_done) struct buf texts = BUF_INIT(WIRE_PAYLOAD_MAX);
    struct tree_entry e;
    int r;
    switch (type) {
    case WIRE_ENTRY:
        r = k->left ? -EPROTO : tree_entry_read(payload, &texts, &e);
        return r < 0 ? err_set(err, -r, "the sandbox's init sent what is not an entry")
                     : write_entry(k, &e, err);
    case WIRE_DATA: return write_data(k, payload, err);
    case WIRE_SKIPPED: return 0;
    case WIRE_OK: return finish(k, err);
    case WIRE_ERROR: tree_report_frame(WIRE_ERROR, payload); return 1;
    default: return err_set(err, EPROTO, "the sandbox's init sent what is not an answer");
    }
}

int pack(const char *format, int out_fd, struct err *err)
{
    _cleanup_(buf_done) struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);
    struct packing k = { .out_fd = out_fd };

    int r = open_archive(&k, format, err);
    while (r == 0) {
        uint8_t type = 0;
        r = tree_next(&payload, &type);
        if (r < 0)
            r = err_fail_as(err, ECONNRESET, FAIL_SANDBOX_NOT_RUNNING,
                            "the sandbox ended before its files were all there");
        else
            r = step(&k, type, &payload, err);
    }
    if (r < 0 && k.a)
        (void)archive_write_fail(k.a); /* or freeing would write an end that looks whole */
    (void)archive_write_free(k.a);
    return r < 0 ? r : 0;
}
