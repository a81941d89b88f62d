#include "archive/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "archive/name.h"
#include "archive/tree.h"

#define BLOCK (256 * 1024)
#define ENTRIES_MAX 1000000
#define TOLD_MAX 10000                /* entries that the report names */
#define TOLD_BYTES (8u * 1024 * 1024) /* and what their names may take */
#define XATTRS_BYTES (256u * 1024)
#define SHOWN 200 /* bytes of a name in a sentence */

struct unpacking {
    struct archive *a;
    int in_fd;
    uint64_t entries, told_n;
    struct buf told; /* lengths and ENTRY payloads of the report */
    char block[BLOCK];
};

static la_ssize_t on_read(struct archive *a, void *ctx, const void **ret_p)
{
    struct unpacking *u = ctx;
    ssize_t n;
    do
        n = read(u->in_fd, u->block, sizeof(u->block));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        archive_set_error(a, errno, "the body cannot be read");
    *ret_p = u->block;
    return n;
}

static int open_archive(struct unpacking *u, const char *format, struct err *err)
{
    bool any = strcmp(format, "auto") == 0, zip = strcmp(format, "zip") == 0;
    u->a = archive_read_new();
    if (!u->a)
        return err_set(err, ENOMEM, "cannot allocate an archive");
    if (any || !zip)
        (void)archive_read_support_format_tar(u->a);
    if (any || zip)
        (void)archive_read_support_format_zip_streamable(u->a);
    if (any || strcmp(format, "tar.gz") == 0)
        (void)archive_read_support_filter_gzip(u->a);
    if (any || strcmp(format, "tar.zst") == 0)
        (void)archive_read_support_filter_zstd(u->a);
    if (archive_read_open(u->a, u, NULL, on_read, NULL) != ARCHIVE_OK)
        return err_fail(err, FAIL_INVALID_ARCHIVE, "%s", archive_error_string(u->a));
    return 0;
}

static int bad(struct err *err, const char *name, const char *why)
{
    return err_fail(err, FAIL_INVALID_ARCHIVE, "entry '%.*s' %s", SHOWN, name, why);
}

/* ---- one entry ---- */

static int clean(const char *name, const char *shown, char out[NAME_SIZE], struct err *err)
{
    switch (name_clean(name, out)) {
    case 0: return 0;
    case -EPERM: return bad(err, shown, "leads outside: absolute, or with '..'");
    case -ENAMETOOLONG: return bad(err, shown, "has too long a name");
    default: return bad(err, shown, "has no name");
    }
}

static int type_of(struct archive_entry *ae, enum wire_file_type *ret_type)
{
    if (archive_entry_hardlink(ae)) {
        *ret_type = WIRE_HARDLINK;
        return 0;
    }
    switch (archive_entry_filetype(ae)) {
    case AE_IFREG: *ret_type = WIRE_REGULAR; return 0;
    case AE_IFDIR: *ret_type = WIRE_DIRECTORY; return 0;
    case AE_IFLNK: *ret_type = WIRE_SYMLINK; return 0;
    case AE_IFIFO: *ret_type = WIRE_FIFO; return 0;
    default: return -EINVAL;
    }
}

/* Only what a user may set by himself; the rest is for whoever owns a system. */
static int put_xattrs(struct archive_entry *ae, struct buf *out)
{
    const char *name;
    const void *value;
    size_t n;
    int r = 0;
    (void)archive_entry_xattr_reset(ae);
    while (r >= 0 && archive_entry_xattr_next(ae, &name, &value, &n) == ARCHIVE_OK) {
        _cleanup_(buf_done) struct buf pair = BUF_INIT(XATTRS_BYTES);
        if (!name || strncmp(name, "user.", 5) != 0)
            continue;
        r = buf_append(&pair, name, strlen(name) + 1);
        if (r >= 0)
            r = buf_append(&pair, value, n);
        if (r >= 0)
            r = wire_put(out, WIRE_T_XATTR, pair.data, pair.len);
    }
    return r;
}

/* Keep it for the report, as a frame's payload with its length before it. */
static int tell(struct unpacking *u, const char *path, uint64_t size)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(NAME_SIZE + 64);
    if (u->told_n == TOLD_MAX)
        return 0;
    int r = wire_put_str(&b, WIRE_T_PATH, path);
    if (r >= 0)
        r = wire_put_u64(&b, WIRE_T_SIZE, size);
    if (r < 0)
        return r;
    uint32_t n = (uint32_t)b.len;
    if (buf_reserve(&u->told, sizeof(n) + b.len) < 0) {
        u->told_n = TOLD_MAX;
        return 0;
    }
    (void)buf_append(&u->told, &n, sizeof(n));
    (void)buf_append(&u->told, b.data, b.len);
    u->told_n++;
    return 0;
}

/* The bytes of the entry that was just announced; *ret_n is how many. */
static int put_bytes(struct unpacking *u, struct archive_entry *ae, const char *name,
                     uint64_t *ret_n, struct err *err)
{
    uint64_t at = 0;
    for (;;) {
        const void *p;
        size_t n;
        la_int64_t offset;
        int r = archive_read_data_block(u->a, &p, &n, &offset);
        if (r == ARCHIVE_EOF)
            break;
        if (r < ARCHIVE_WARN)
            return bad(err, name, archive_error_string(u->a));
        if (offset < 0 || (uint64_t)offset < at)
            return bad(err, name, "goes backwards");
        r = (uint64_t)offset > at ? tree_put_hole((uint64_t)offset - at) : 0;
        if (r >= 0)
            r = tree_put_data(p, n);
        if (r < 0)
            return r;
        at = (uint64_t)offset + n;
    }
    uint64_t size = archive_entry_size_is_set(ae) ? (uint64_t)archive_entry_size(ae) : at;
    *ret_n = size > at ? size : at;
    return size > at ? tree_put_hole(size - at) : 0;
}

static int put_entry(struct unpacking *u, struct archive_entry *ae, struct err *err)
{
    _cleanup_(buf_done) struct buf xattrs = BUF_INIT(XATTRS_BYTES);
    char path[NAME_SIZE], link[NAME_SIZE];
    const char *name = archive_entry_pathname(ae);
    struct tree_entry e = { .path = path };

    if (!name)
        return bad(err, "?", "has a name that cannot be read");
    int r = clean(name, name, path, err);
    if (r < 0)
        return r;
    if (type_of(ae, &e.type) < 0)
        return bad(err, name, "is a device, or of a kind that cannot be made here");
    if (e.type == WIRE_HARDLINK) {
        r = clean(archive_entry_hardlink(ae), name, link, err);
        if (r < 0)
            return r;
        e.link = link;
    }
    if (e.type == WIRE_SYMLINK) {
        e.link = archive_entry_symlink(ae);
        if (!e.link || !*e.link || strlen(e.link) >= NAME_SIZE)
            return bad(err, name, "is a link to nothing");
    }
    e.has_mode = e.type != WIRE_HARDLINK && e.type != WIRE_SYMLINK;
    e.mode = archive_entry_perm(ae);
    e.has_mtime = archive_entry_mtime_is_set(ae);
    e.mtime_ns = e.has_mtime
                     ? archive_entry_mtime(ae) * INT64_C(1000000000) + archive_entry_mtime_nsec(ae)
                     : 0;
    /* A size is only a promise: the bytes that come are what counts. */
    if (put_xattrs(ae, &xattrs) < 0)
        return bad(err, name, "has too many attributes");
    r = tree_put_entry(&e, &xattrs);
    uint64_t n = 0;
    if (r >= 0 && e.type == WIRE_REGULAR)
        r = put_bytes(u, ae, name, &n, err);
    if (r >= 0 && (e.type == WIRE_REGULAR || e.type == WIRE_HARDLINK))
        r = tell(u, path, n);
    return r;
}

/* ---- the end ---- */

/* What init says is the report; before a success come the entries that were made. */
static int report(struct unpacking *u, struct err *err)
{
    _cleanup_(buf_done) struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);
    uint8_t type = 0;
    int r = tree_next(&payload, &type);
    if (r < 0)
        return err_fail_as(err, ECONNRESET, FAIL_SANDBOX_NOT_RUNNING,
                           "the sandbox ended before the files were all there");
    for (size_t at = 0; type == WIRE_OK && at < u->told.len;) {
        uint32_t n;
        memcpy(&n, u->told.data + at, sizeof(n));
        struct buf one = { u->told.data + at + sizeof(n), n, n, n };
        tree_report_frame(WIRE_ENTRY, &one);
        at += sizeof(n) + n;
    }
    tree_report_frame(type, &payload);
    return 0;
}

/* Read on to the end of the body: archives are padded, and whoever sends the padding must find a reader. */
static void drain(struct unpacking *u)
{
    const void *p;
    while (on_read(u->a, u, &p) > 0)
        ;
}

static int run(struct unpacking *u, const char *format, struct err *err)
{
    struct archive_entry *ae = NULL;
    int r = open_archive(u, format, err);
    while (r >= 0) {
        int got = archive_read_next_header(u->a, &ae);
        if (got == ARCHIVE_EOF)
            break;
        if (got < ARCHIVE_WARN)
            return err_fail(err, FAIL_INVALID_ARCHIVE, "%s", archive_error_string(u->a));
        if (++u->entries > ENTRIES_MAX)
            return err_fail(err, FAIL_INVALID_ARCHIVE, "it has over %d entries", ENTRIES_MAX);
        r = put_entry(u, ae, err);
    }
    if (r >= 0) {
        drain(u);
        r = tree_put_end();
    }
    /* Refused while we were sending: init says why. */
    if (r == -EPIPE || r == -ECONNRESET || r >= 0)
        return report(u, err);
    return err->code ? r : err_set(err, -r, "cannot pass the archive on to the sandbox");
}

int unpack(const char *format, int in_fd, struct err *err)
{
    struct unpacking *u = calloc(1, sizeof(*u));
    if (!u)
        return err_set(err, ENOMEM, "cannot allocate memory");
    u->in_fd = in_fd;
    u->told.max = TOLD_BYTES;
    int r = run(u, format, err);
    (void)archive_read_free(u->a);
    buf_done(&u->told);
    free(u);
    return r;
}
