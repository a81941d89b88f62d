/* What no archive needs any more goes. Which that is, the manifests say; nobody archives meanwhile (archive_bucket.c). */
#include <errno.h>
#include <string.h>

#include "base/hex.h"
#include "base/log.h"
#include "core/archive_private.h"

#define LOG_MODULE "archive"

struct used { /* digests; sorted when all are there */
    uint8_t (*items)[CHUNK_DIGEST];
    size_t n, cap;
};

struct keys {
    char (*items)[ARCHIVE_KEY];
    size_t n, cap;
};

static int use(struct used *u, const uint8_t digest[CHUNK_DIGEST])
{
    if (u->n == u->cap) {
        size_t cap = u->cap ? u->cap * 2 : 1024;
        void *items = reallocarray(u->items, cap, CHUNK_DIGEST);
        if (!items)
            return -ENOMEM;
        u->items = items;
        u->cap = cap;
    }
    memcpy(u->items[u->n++], digest, CHUNK_DIGEST);
    return 0;
}

static int use_stream(struct used *u, const struct archive_stream *s)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->n; i++)
        r = use(u, s->pieces[i].digest);
    return r;
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, CHUNK_DIGEST);
}

static int add_key(void *ctx, const struct s3_object *o, struct err *err)
{
    struct keys *k = ctx;
    if (strlen(o->key) >= ARCHIVE_KEY)
        return 0; /* not ours */
    if (k->n == k->cap) {
        size_t cap = k->cap ? k->cap * 2 : 64;
        void *items = reallocarray(k->items, cap, ARCHIVE_KEY);
        if (!items)
            return err_set(err, ENOMEM, "cannot allocate a list");
        k->items = items;
        k->cap = cap;
    }
    (void)snprintf(k->items[k->n++], ARCHIVE_KEY, "%s", o->key);
    return 0;
}

/* One that cannot be read might need anything: then nothing goes. */
static int read_manifests(struct s3 *s3, int64_t *locked_ms, struct used *pieces,
                          struct used *layers, struct err *err)
{
    struct keys k = { .n = 0 };
    int r = s3_list(s3, "archives/", add_key, &k, NULL, err);
    for (size_t i = 0; r >= 0 && i < k.n; i++) {
        struct archive_manifest m = { .n_layers = 0 };
        r = archive_lock_collect_renew(s3, locked_ms, err);
        if (r < 0)
            break;
        r = archive_manifest_get(s3, k.items[i], &m, NULL, err);
        if (r == -ENOENT) { /* removed just now */
            r = 0;
            continue;
        }
        if (r < 0) {
            r = err_wrap(err, r, "'%s'", k.items[i]);
            break;
        }
        r = use_stream(pieces, &m.files);
        if (r == 0)
            r = use_stream(pieces, &m.memory);
        for (size_t n = 0; r == 0 && n < m.n_layers; n++) {
            r = use_stream(pieces, &m.layers[n].blob);
            if (r == 0)
                r = use(layers, m.layers[n].blob.digest);
        }
        archive_manifest_done(&m);
        if (r < 0)
            r = err_set(err, -r, "cannot allocate the list of pieces");
    }
    free(k.items);
    if (pieces->n)
        qsort(pieces->items, pieces->n, CHUNK_DIGEST, by_bytes);
    if (layers->n)
        qsort(layers->items, layers->n, CHUNK_DIGEST, by_bytes);
    return r;
}

static bool is_used(const struct used *u, const uint8_t *digest)
{
    return u->n && bsearch(digest, u->items, u->n, CHUNK_DIGEST, by_bytes);
}

static int drop_pieces(struct core *core, int64_t *locked_ms, const struct used *u,
                       struct archive_collected *ret, struct err *err)
{
    struct s3 *s3 = core->archives.s3;
    _cleanup_(archive_known_done) struct archive_known there = { .n = 0 };
    int r = archive_known_load(s3, &there, err);
    for (size_t i = 0; r >= 0 && i < there.n; i++) {
        char key[ARCHIVE_KEY];
        if (is_used(u, there.digests[i]))
            continue;
        if (atomic_load(&core->stopping))
            return err_fail(err, FAIL_CANCELLED, "the daemon is being stopped");
        archive_key_piece(there.digests[i], key);
        r = archive_lock_collect_renew(s3, locked_ms, err);
        if (r >= 0)
            r = s3_delete(s3, key, err);
        if (r >= 0) {
            ret->pieces++;
            ret->bytes += there.sizes[i];
        }
    }
    return r;
}

/* A list of a layer's pieces, once its pieces may have gone, would only mislead. */
static int drop_layers(struct s3 *s3, const struct used *layers, struct err *err)
{
    struct keys k = { .n = 0 };
    int r = s3_list(s3, "layers/", add_key, &k, NULL, err);
    for (size_t i = 0; r >= 0 && i < k.n; i++) {
        bool needed = false;
        for (size_t n = 0; n < layers->n && !needed; n++) {
            char hex[ARCHIVE_HEX];
            hex_encode(layers->items[n], CHUNK_DIGEST, hex);
            needed = strcmp(k.items[i] + strlen("layers/"), hex) == 0;
        }
        if (!needed)
            r = s3_delete(s3, k.items[i], err);
    }
    free(k.items);
    return r;
}

static int collect(struct core *core, struct archive_collected *ret, struct err *err)
{
    struct s3 *s3 = core->archives.s3;
    struct used pieces = { .n = 0 }, layers = { .n = 0 };
    int64_t locked_ms = 0;
    int r = archive_lock_collect(s3, &locked_ms, err);
    if (r <= 0) {
        ret->busy = r == 0;
        return r;
    }
    atomic_store(&core->archives.garbage, false); /* what is removed from now on is for the next */
    r = read_manifests(s3, &locked_ms, &pieces, &layers, err);
    if (r >= 0)
        r = drop_layers(s3, &layers, err);
    if (r >= 0)
        r = drop_pieces(core, &locked_ms, &pieces, ret, err);
    archive_unlock_collect(s3);
    free(pieces.items);
    free(layers.items);
    if (r < 0)
        atomic_store(&core->archives.garbage, true);
    else if (ret->pieces)
        log_info("collected pieces=%llu bytes=%llu", (unsigned long long)ret->pieces,
                 (unsigned long long)ret->bytes);
    return r;
}

int archive_collect(struct core *core, struct archive_collected *ret, struct err *err)
{
    *ret = (struct archive_collected){ .pieces = 0 };
    if (!core->archives.s3)
        return err_fail(err, FAIL_ARCHIVE_UNAVAILABLE,
                        "this daemon has no object storage: start it with --archive");
    (void)pthread_mutex_lock(&core->archives.collect);
    int r = collect(core, ret, err);
    (void)pthread_mutex_unlock(&core->archives.collect);
    return r;
}
