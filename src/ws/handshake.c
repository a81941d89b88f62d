#include "ws/handshake.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/base64.h"
#include "base/id.h"

#define KEY_BYTES 16
#define KEY_LEN (HANDSHAKE_KEY_SIZE - 1)
#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" /* the RFC's */

static int encode(const void *p, size_t n, char *out, size_t size)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(2 * HANDSHAKE_ACCEPT_SIZE);
    int r = base64_encode(p, n, &text);
    if (r < 0 || text.len >= size)
        return r < 0 ? r : -EMSGSIZE;
    memcpy(out, text.data, text.len + 1);
    return 0;
}

int handshake_key(char ret_key[HANDSHAKE_KEY_SIZE])
{
    unsigned char bytes[KEY_BYTES];
    int r = random_bytes(bytes, sizeof(bytes));
    return r < 0 ? r : encode(bytes, sizeof(bytes), ret_key, HANDSHAKE_KEY_SIZE);
}

bool handshake_key_valid(const char *key)
{
    _cleanup_(buf_done) struct buf bytes = BUF_INIT(2 * KEY_LEN);
    return strlen(key) == KEY_LEN && base64_decode(key, KEY_LEN, &bytes) >= 0 &&
           bytes.len == KEY_BYTES;
}

int handshake_accept(const char *key, char ret_accept[HANDSHAKE_ACCEPT_SIZE])
{
    char text[KEY_LEN + sizeof(GUID)];
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    int len = snprintf(text, sizeof(text), "%.*s%s", KEY_LEN, key, GUID);
    if (len < 0 || EVP_Digest(text, (size_t)len, hash, &n, EVP_sha1(), NULL) != 1)
        return -EIO;
    return encode(hash, n, ret_accept, HANDSHAKE_ACCEPT_SIZE);
}
