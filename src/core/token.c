#include "core/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base/hex.h"
#include "base/id.h"
#include "core/private.h"

#define META_KEY "token_secret"

int tokens_load(struct core *core, struct err *err)
{
    _cleanup_free_ char *text = NULL;
    int r = store_meta_get(core->store, META_KEY, &text, err);
    if (r < 0)
        return r;
    if (r > 0 && strlen(text) == sizeof(core->token_secret) - 1) {
        memcpy(core->token_secret, text, sizeof(core->token_secret));
        return 0;
    }
    unsigned char raw[(sizeof(core->token_secret) - 1) / 2];
    r = random_bytes(raw, sizeof(raw));
    if (r < 0)
        return err_set(err, -r, "cannot make a secret");
    hex_encode(raw, sizeof(raw), core->token_secret);
    return store_meta_set(core->store, META_KEY, core->token_secret, err);
}

void token_for(struct core *core, const char *purpose, const char *sandbox, char ret[TOKEN_SIZE])
{
    char text[256];
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    int n = snprintf(text, sizeof(text), "%s:%s", purpose, sandbox);
    if (n < 0 || (size_t)n >= sizeof(text) ||
        !HMAC(EVP_sha256(), core->token_secret, (int)strlen(core->token_secret),
              (const unsigned char *)text, (size_t)n, mac, &len))
        (void)random_bytes(mac, sizeof(mac)); /* a token that opens nothing */
    hex_encode(mac, (TOKEN_SIZE - 1) / 2, ret);
}

bool token_is(struct core *core, const char *purpose, const char *sandbox, const char *text)
{
    char right[TOKEN_SIZE];
    token_for(core, purpose, sandbox, right);
    return strlen(text) == sizeof(right) - 1 && CRYPTO_memcmp(text, right, sizeof(right) - 1) == 0;
}
