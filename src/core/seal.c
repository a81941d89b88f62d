#include "core/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/id.h"

#define NONCE 12
#define TAG 16
#define PATH_SIZE 4096
#define SEALED_MAX (1024 * 1024)

static void ctx_free(EVP_CIPHER_CTX **ctx)
{
    EVP_CIPHER_CTX_free(*ctx);
}

static int read_key(const char *path, unsigned char ret_key[SEAL_KEY_BYTES], struct err *err)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ENOENT : err_set(err, errno, "cannot open '%s'", path);
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != SEAL_KEY_BYTES ||
        fd_read_full(fd, ret_key, SEAL_KEY_BYTES) < 0)
        return err_set(err, EBADMSG,
                       "'%s' is not a key; restore it, or remove it and set the "
                       "secrets anew",
                       path);
    return 0;
}

/* It has its name only when it is whole and on disk: what is sealed with it stays readable. */
static int make_key(const char *path, unsigned char ret_key[SEAL_KEY_BYTES], struct err *err)
{
    char part[PATH_SIZE];
    if (snprintf(part, sizeof(part), "%s.part", path) >= (int)sizeof(part))
        return err_set(err, ENAMETOOLONG, "'%s' is too long", path);
    int r = random_bytes(ret_key, SEAL_KEY_BYTES);
    if (r < 0)
        return err_set(err, -r, "cannot make a key");
    _cleanup_fd_ int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write_full(fd, ret_key, SEAL_KEY_BYTES) < 0 || fsync(fd) < 0 ||
        rename(part, path) < 0)
        return err_set(err, errno, "cannot write '%s'", path);
    return 0;
}

int seal_key(const char *path, unsigned char ret_key[SEAL_KEY_BYTES], struct err *err)
{
    int r = read_key(path, ret_key, err);
    return r == -ENOENT ? make_key(path, ret_key, err) : r;
}

int seal_close(const unsigned char key[SEAL_KEY_BYTES], const char *about, const void *p, size_t n,
               struct buf *out)
{
    _cleanup_(ctx_free) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    _cleanup_(buf_done) struct buf raw = BUF_INIT(SEALED_MAX);
    int len = 0, r = n > SEALED_MAX / 2 ? -EMSGSIZE : buf_reserve(&raw, NONCE + n + TAG);
    if (r < 0)
        return r;
    unsigned char *at = (unsigned char *)raw.data;
    r = random_bytes(at, NONCE);
    if (r < 0)
        return r;
    if (!ctx || EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, at) != 1 ||
        EVP_EncryptUpdate(ctx, NULL, &len, (const unsigned char *)about, (int)strlen(about)) != 1 ||
        EVP_EncryptUpdate(ctx, at + NONCE, &len, p, (int)n) != 1 ||
        EVP_EncryptFinal_ex(ctx, at + NONCE + n, &len) != 1 ||
        EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG, at + NONCE + n) != 1)
        return -EIO;
    return base64_encode(at, NONCE + n + TAG, out);
}

int seal_open(const unsigned char key[SEAL_KEY_BYTES], const char *about, const char *text,
              struct buf *out)
{
    _cleanup_(ctx_free) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    _cleanup_(buf_done) struct buf raw = BUF_INIT(SEALED_MAX);
    int len = 0, end = 0, r = base64_decode(text, strlen(text), &raw);
    if (r == -EPROTO || (r >= 0 && raw.len < NONCE + TAG))
        return -EBADMSG;
    size_t n = r < 0 ? 0 : raw.len - NONCE - TAG;
    if (r >= 0)
        r = buf_reserve(out, n + 1);
    if (r < 0 || !ctx)
        return r < 0 ? r : -ENOMEM;
    unsigned char *at = (unsigned char *)raw.data, *to = (unsigned char *)out->data + out->len;
    if (EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, at) != 1 ||
        EVP_DecryptUpdate(ctx, NULL, &len, (const unsigned char *)about, (int)strlen(about)) != 1 ||
        EVP_DecryptUpdate(ctx, to, &len, at + NONCE, (int)n) != 1 ||
        EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, TAG, at + NONCE + n) != 1 ||
        EVP_DecryptFinal_ex(ctx, to + len, &end) != 1) {
        explicit_bzero(to, n);
        return -EBADMSG;
    }
    out->len += n;
    return 0;
}
