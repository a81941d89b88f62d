#include "core/digest.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"

#define SHA256_BYTES 32

struct digest {
    EVP_MD_CTX *ctx;
};

bool digest_valid(const char *text)
{
    if (!text || strncmp(text, "sha256:", DIGEST_HEX) != 0)
        return false;
    size_t n = strspn(text + DIGEST_HEX, "0123456789abcdef");
    return n == 2 * (size_t)SHA256_BYTES && text[DIGEST_HEX + n] == '\0';
}

struct digest *digest_begin(void)
{
    struct digest *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->ctx = EVP_MD_CTX_new();
    if (!d->ctx || EVP_DigestInit_ex(d->ctx, EVP_sha256(), NULL) != 1) {
        digest_free(d);
        return NULL;
    }
    return d;
}

int digest_add(struct digest *d, const void *p, size_t n)
{
    return EVP_DigestUpdate(d->ctx, p, n) == 1 ? 0 : -EIO;
}

int digest_end(struct digest *d, char ret_digest[DIGEST_SIZE])
{
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    bool ok = EVP_DigestFinal_ex(d->ctx, raw, &n) == 1 && n == SHA256_BYTES;
    digest_free(d);
    if (!ok)
        return -EIO;
    (void)snprintf(ret_digest, DIGEST_SIZE, "sha256:");
    hex_encode(raw, n, ret_digest + DIGEST_HEX);
    return 0;
}

void digest_free(struct digest *d)
{
    if (!d)
        return;
    EVP_MD_CTX_free(d->ctx);
    free(d);
}

int digest_of(const void *p, size_t n, char ret_digest[DIGEST_SIZE])
{
    struct digest *d = digest_begin();
    if (!d)
        return -ENOMEM;
    int r = digest_add(d, p, n);
    if (r < 0) {
        digest_free(d);
        return r;
    }
    return digest_end(d, ret_digest);
}

int digest_chain(const char *parent, const char *diff_id, char ret_chain[DIGEST_SIZE])
{
    char both[2 * DIGEST_SIZE];
    if (!parent || !*parent) {
        memcpy(ret_chain, diff_id, strnlen(diff_id, DIGEST_SIZE - 1) + 1);
        return 0;
    }
    int n = snprintf(both, sizeof(both), "%s %s", parent, diff_id);
    return n < 0 || (size_t)n >= sizeof(both) ? -EINVAL : digest_of(both, (size_t)n, ret_chain);
}
