#include "registry/sha.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/hex.h"

static const char prefix[] = "sha256:";

bool sha_valid(const char *p, size_t n)
{
    if (n != SHA_LEN || memcmp(p, prefix, sizeof(prefix) - 1) != 0)
        return false;
    for (size_t i = sizeof(prefix) - 1; i < n; i++)
        if (!((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f')))
            return false;
    return true;
}

int sha_of(const void *p, size_t n, char out[SHA_SIZE])
{
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    if (EVP_Digest(p, n, raw, &len, EVP_sha256(), NULL) != 1 || len != 32)
        return -EIO;
    memcpy(out, prefix, sizeof(prefix) - 1);
    hex_encode(raw, len, out + sizeof(prefix) - 1);
    return 0;
}
