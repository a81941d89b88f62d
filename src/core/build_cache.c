#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/build_private.h"

#define LOG_MODULE "build"
#define FORMAT "warren build 1" /* of the keys: another one makes every older entry unfindable */

void build_key_bytes(struct build_key *key, const void *p, size_t n)
{
    if (key->r >= 0)
        key->r = digest_add(key->hash, p, n);
}

void build_key_number(struct build_key *key, uint64_t v)
{
    build_key_bytes(key, &v, sizeof(v));
}

/* With its length before it, so that two texts cannot look like two others. */
void build_key_text(struct build_key *key, const char *text)
{
    build_key_number(key, text ? strlen(text) : UINT64_MAX);
    if (text)
        build_key_bytes(key, text, strlen(text));
}

void build_key_begin(struct build_key *key, const struct build *b, const char *kind,
                     const char *parent)
{
    *key = (struct build_key){ .hash = digest_begin() };
    if (!key->hash)
        key->r = -ENOMEM;
    build_key_text(key, FORMAT);
    build_key_text(key, b->owner);
    build_key_text(key, parent);
    build_key_text(key, kind);
}

int build_key_end(struct build_key *key, char ret_key[DIGEST_SIZE], struct err *err)
{
    int r = key->r;
    if (r >= 0)
        r = digest_end(key->hash, ret_key);
    else
        digest_free(key->hash);
    key->hash = NULL;
    return r < 0 ? err_set(err, -r, "cannot hash a step") : 0;
}

int build_cache_find(struct build *b, const char *key, char ret_chain[DIGEST_SIZE],
                     int64_t *ret_made_ms)
{
    _cleanup_free_ char *chain = NULL;
    int64_t made_ms;
    if (b->no_cache ||
        store_build_get(b->core->store, key, clock_now_ms(), &chain, &made_ms, NULL) <= 0)
        return 0;
    if (*chain && !digest_valid(chain))
        return 0;
    (void)snprintf(ret_chain, DIGEST_SIZE, "%s", chain);
    *ret_made_ms = made_ms;
    return 1;
}

void build_cache_put(struct build *b, const char *key, const char *chain, int64_t made_ms)
{
    struct err err = ERR_INIT;
    int r = *chain ? image_keep_layer(b->core, chain, &err) : 0;
    if (r >= 0)
        r = store_build_put(b->core->store, key, b->owner, chain, made_ms, &err);
    if (r < 0)
        log_warn("a step is not cached image=%s err=\"%s\"", b->name, err.msg);
}
