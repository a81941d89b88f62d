#include "unpack/stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hex.h"

#define READ_BLOCK (256 * 1024)
#define TAR_MAX (256ull * 1024 * 1024 * 1024) /* a bomb of zeros would never end */

struct stream {
    struct archive *packed, *tar;
    EVP_MD_CTX *hash;
    uint64_t bytes;
    uint64_t ratio, packed_bytes; /* ratio 0: no bound; packed_bytes 0: a pipe */
    bool ended;
    char block[READ_BLOCK];
};

static int refuse(struct archive *a, const char *doing, struct err *err)
{
    const char *why = archive_error_string(a);
    return err_fail(err, FAIL_INVALID_IMAGE, "%s: %s", doing, why ? why : "damaged archive");
}

/* Compare with a file's size, or with the bytes that came through a pipe so far. */
static bool is_bomb(const struct stream *s)
{
    uint64_t packed =
        s->packed_bytes ? s->packed_bytes : (uint64_t)archive_filter_bytes(s->packed, -1);
    return s->ratio && s->bytes > UNPACK_RATIO_FLOOR && s->bytes / s->ratio > packed;
}

/* What was in the packing, hashed: bytes, 0 at the end, -1 with the reason in `a`. */
static la_ssize_t unwrap(struct archive *a, struct stream *s)
{
    if (s->ended)
        return 0;
    la_ssize_t n = archive_read_data(s->packed, s->block, sizeof(s->block));
    if (n == 0)
        s->ended = true;
    if (n < 0) {
        archive_set_error(a, EINVAL, "%s", archive_error_string(s->packed));
        return -1;
    }
    s->bytes += (uint64_t)n;
    if (s->bytes > TAR_MAX || EVP_DigestUpdate(s->hash, s->block, (size_t)n) != 1) {
        archive_set_error(a, EINVAL, "more than %ju GiB", (uintmax_t)(TAR_MAX >> 30));
        return -1;
    }
    if (is_bomb(s)) {
        archive_set_error(a, EINVAL, "it unpacks to over %ju times its size (image-ratio)",
                          (uintmax_t)s->ratio);
        return -1;
    }
    return n;
}

static la_ssize_t on_read(struct archive *a, void *ctx, const void **ret_p)
{
    struct stream *s = ctx;
    *ret_p = s->block;
    return unwrap(a, s);
}

static int open_packed(struct stream *s, int fd, struct err *err)
{
    struct archive_entry *entry;
    (void)archive_read_support_filter_gzip(s->packed);
    (void)archive_read_support_filter_zstd(s->packed);
    (void)archive_read_support_filter_xz(s->packed);
    (void)archive_read_support_filter_bzip2(s->packed);
    (void)archive_read_support_format_raw(s->packed);
    (void)archive_read_support_format_empty(s->packed);
    if (archive_read_open_fd(s->packed, fd, READ_BLOCK) != ARCHIVE_OK)
        return refuse(s->packed, "cannot read the archive", err);
    int a = archive_read_next_header(s->packed, &entry);
    s->ended = a == ARCHIVE_EOF;
    return a == ARCHIVE_OK || a == ARCHIVE_EOF ? 0
                                               : refuse(s->packed, "cannot read the archive", err);
}

int stream_open(int fd, uint64_t ratio, struct stream **ret_s, struct err *err)
{
    _cleanup_(stream_freep) struct stream *s = calloc(1, sizeof(*s));
    struct stat st;
    if (!s)
        return err_set(err, ENOMEM, "out of memory");
    s->ratio = ratio;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        s->packed_bytes = (uint64_t)st.st_size;
    s->packed = archive_read_new();
    s->tar = archive_read_new();
    s->hash = EVP_MD_CTX_new();
    if (!s->packed || !s->tar || !s->hash || EVP_DigestInit_ex(s->hash, EVP_sha256(), NULL) != 1)
        return err_set(err, ENOMEM, "out of memory");
    int r = open_packed(s, fd, err);
    if (r < 0)
        return r;
    if (s->ended)
        return err_fail(err, FAIL_INVALID_IMAGE, "the archive is empty");
    (void)archive_read_support_format_tar(s->tar);
    if (archive_read_open(s->tar, s, NULL, on_read, NULL) != ARCHIVE_OK)
        return refuse(s->tar, "not a tar archive", err);
    *ret_s = take_ptr(s);
    return 0;
}

void stream_free(struct stream *s)
{
    if (!s)
        return;
    (void)archive_read_free(s->tar);
    (void)archive_read_free(s->packed);
    EVP_MD_CTX_free(s->hash);
    free(s);
}

int stream_next(struct stream *s, struct archive_entry **ret_entry, struct err *err)
{
    int a = archive_read_next_header(s->tar, ret_entry);
    if (a == ARCHIVE_EOF)
        return 0;
    return a < ARCHIVE_WARN ? refuse(s->tar, "cannot read the archive", err) : 1;
}

int stream_data(struct stream *s, const void **ret_p, size_t *ret_n, int64_t *ret_offset,
                struct err *err)
{
    la_int64_t offset = 0;
    int a = archive_read_data_block(s->tar, ret_p, ret_n, &offset);
    if (a == ARCHIVE_EOF)
        return 0;
    *ret_offset = offset;
    return a < ARCHIVE_WARN ? refuse(s->tar, "cannot read the archive", err) : 1;
}

int stream_finish(struct stream *s, char ret_hex[UNPACK_HEX_SIZE], struct err *err)
{
    la_ssize_t n;
    while ((n = unwrap(s->tar, s)) > 0)
        ;
    if (n < 0)
        return refuse(s->tar, "cannot read the archive", err);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    if (EVP_DigestFinal_ex(s->hash, digest, &len) != 1 || len != (UNPACK_HEX_SIZE - 1) / 2)
        return err_set(err, EIO, "cannot hash the archive");
    hex_encode(digest, len, ret_hex);
    return 0;
}

int stream_path(const char *path, char *out, size_t size)
{
    size_t at = 0;
    if (!path)
        return -EINVAL;
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        bool dot = n == 1 && p[0] == '.';
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return -EINVAL;
        if (n > 0 && !dot) {
            if (at + n + 2 > size)
                return -EINVAL;
            if (at > 0)
                out[at++] = '/';
            memcpy(out + at, p, n);
            at += n;
        }
        p += n;
        p += strspn(p, "/");
    }
    out[at] = '\0';
    return 0;
}
