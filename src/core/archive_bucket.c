/* What lies where in the bucket, and who may change it now. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hex.h"
#include "core/archive_private.h"

#define COLLECT_LOCK "locks/collect"
#define ARCHIVE_LOCK "locks/archive-"
#define STALE_MS (15ll * 60 * 1000) /* a lock whose holder died counts no longer than this */
#define RENEW_MS (60ll * 1000)      /* one that lives says so */
#define WAIT_MS 250

void archive_key_piece(const uint8_t digest[CHUNK_DIGEST], char out[ARCHIVE_KEY])
{
    char hex[ARCHIVE_HEX];
    hex_encode(digest, CHUNK_DIGEST, hex);
    (void)snprintf(out, ARCHIVE_KEY, "chunks/%.2s/%s", hex, hex);
}

void archive_key_manifest(const char *owner, const char *id, char out[ARCHIVE_KEY])
{
    (void)snprintf(out, ARCHIVE_KEY, "archives/%s/%s", owner, id);
}

void archive_key_layer(const char *digest, char out[ARCHIVE_KEY])
{
    (void)snprintf(out, ARCHIVE_KEY, "layers/%s", digest + DIGEST_HEX);
}

/* ---- what is there ---- */

void archive_known_done(struct archive_known *k)
{
    free(k->digests);
    free(k->sizes);
    *k = (struct archive_known){ .n = 0 };
}

/* "chunks/ab/<64 digits>". */
static bool piece_of(const char *key, uint8_t out[CHUNK_DIGEST])
{
    return strlen(key) == 10 + ARCHIVE_HEX - 1 && strncmp(key, "chunks/", 7) == 0 &&
           strncmp(key + 7, key + 10, 2) == 0 && hex_decode(key + 10, out, CHUNK_DIGEST) == 0;
}

static int note(void *ctx, const struct s3_object *o, struct err *err)
{
    struct archive_known *k = ctx;
    uint8_t digest[CHUNK_DIGEST];
    if (!piece_of(o->key, digest))
        return 0; /* not ours */
    /* Lists are sorted, and so stay ours; a service that does not sort only sends more. */
    if (k->n > 0 && memcmp(k->digests[k->n - 1], digest, CHUNK_DIGEST) >= 0)
        return 0;
    if (k->n == k->cap) {
        size_t cap = k->cap ? k->cap * 2 : 1024;
        void *digests = reallocarray(k->digests, cap, CHUNK_DIGEST);
        if (digests)
            k->digests = digests;
        uint64_t *sizes = digests ? reallocarray(k->sizes, cap, sizeof(*sizes)) : NULL;
        if (!sizes)
            return err_set(err, ENOMEM, "cannot allocate the list of pieces");
        k->sizes = sizes;
        k->cap = cap;
    }
    memcpy(k->digests[k->n], digest, CHUNK_DIGEST);
    k->sizes[k->n++] = o->size;
    return 0;
}

int archive_known_load(struct s3 *s3, struct archive_known *ret_k, struct err *err)
{
    struct archive_known k = { .n = 0 };
    int r = s3_list(s3, "chunks/", note, &k, NULL, err);
    if (r < 0)
        archive_known_done(&k);
    else
        *ret_k = k;
    return r;
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, CHUNK_DIGEST);
}

bool archive_known_has(const struct archive_known *k, const struct archive_piece *p)
{
    const uint8_t *at = k->n ? bsearch(p->digest, k->digests, k->n, CHUNK_DIGEST, by_bytes) : NULL;
    size_t i = at ? (size_t)(at - k->digests[0]) / CHUNK_DIGEST : 0;
    return at && k->sizes[i] == p->packed;
}

int archive_manifest_get(struct s3 *s3, const char *key, struct archive_manifest *ret_m,
                         char ret_digest[DIGEST_SIZE], struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(ARCHIVE_MANIFEST_MAX);
    int r = s3_get(s3, key, &text, err);
    const char *p = text.data ? text.data : "";
    if (r >= 0 && ret_digest && digest_of(p, text.len, ret_digest) < 0)
        r = err_set(err, EIO, "cannot hash a manifest");
    return r < 0 ? r : archive_manifest_read(p, text.len, ret_m, err);
}

int archive_manifest_own(struct s3 *s3, const struct checkpoint *c, struct archive_manifest *ret_m,
                         struct err *err)
{
    char key[ARCHIVE_KEY], digest[DIGEST_SIZE];
    archive_key_manifest(c->owner, c->id, key);
    int r = archive_manifest_get(s3, key, ret_m, digest, err);
    if (r >= 0 && strcmp(digest, c->manifest) != 0) {
        archive_manifest_done(ret_m);
        *ret_m = (struct archive_manifest){ .n_layers = 0 };
        return err_fail(err, FAIL_ARCHIVE_CORRUPT,
                        "the manifest '%s' is not the one that was written: it was changed there",
                        key);
    }
    return r;
}

/* ---- who is at work ---- */

/* Both sides leave their mark first and look for the other's after it, so of two at once at least one sees the other: that
 * needs a service whose lists show what was written before, as S3's do. Who archives is safe once it saw no collection, for
 * every later one sees its mark; pieces that are there then stay. */
struct seen {
    int64_t now_ms;                 /* of the service's clock; told after the page */
    int64_t archive_ms, collect_ms; /* the newest of each; 0: none */
};

static int look(void *ctx, const struct s3_object *o, struct err *err)
{
    struct seen *s = ctx;
    int64_t *at = strcmp(o->key, COLLECT_LOCK) == 0                          ? &s->collect_ms
                  : strncmp(o->key, ARCHIVE_LOCK, strlen(ARCHIVE_LOCK)) == 0 ? &s->archive_ms
                                                                             : NULL;
    if (at && o->modified_ms > *at)
        *at = o->modified_ms;
    return 0;
}

static int look_around(struct s3 *s3, struct seen *ret, struct err *err)
{
    struct seen s = { .now_ms = 0 };
    int r = s3_list(s3, "locks/", look, &s, &s.now_ms, err);
    if (r >= 0 && s.now_ms == 0)
        s.now_ms = clock_now_ms();
    if (r >= 0)
        *ret = s;
    return r;
}

static bool stands(const struct seen *s, int64_t at_ms)
{
    return at_ms && s->now_ms - at_ms <= STALE_MS;
}

static int put_lock(struct archive_run *run, struct err *err)
{
    char key[ARCHIVE_KEY];
    (void)snprintf(key, sizeof(key), ARCHIVE_LOCK "%s", run->lock);
    run->locked_ms = clock_mono_ms();
    return s3_put(run->core->archives.s3, key, "", 0, err);
}

static int wait_a_little(struct archive_run *run, struct err *err)
{
    const struct timespec nap = { .tv_nsec = WAIT_MS * 1000000l };
    run->at.stage = "wait";
    (void)nanosleep(&nap, NULL);
    return archive_told(run, true, err);
}

int archive_lock(struct archive_run *run, const char *id, struct err *err)
{
    for (;;) {
        struct seen s = { .now_ms = 0 };
        run->lock = id;
        int r = put_lock(run, err);
        if (r >= 0)
            r = look_around(run->core->archives.s3, &s, err);
        if (r >= 0 && !stands(&s, s.collect_ms))
            return 0;
        archive_unlock(run);
        if (r >= 0)
            r = wait_a_little(run, err);
        if (r < 0)
            return r;
    }
}

int archive_lock_renew(struct archive_run *run, struct err *err)
{
    return run->lock && clock_mono_ms() - run->locked_ms > RENEW_MS ? put_lock(run, err) : 0;
}

void archive_unlock(struct archive_run *run)
{
    char key[ARCHIVE_KEY];
    (void)snprintf(key, sizeof(key), ARCHIVE_LOCK "%s", run->lock);
    run->lock = NULL;
    (void)s3_delete(run->core->archives.s3, key, NULL);
}

int archive_lock_collect(struct s3 *s3, int64_t *ret_locked_ms, struct err *err)
{
    struct seen s;
    int r = look_around(s3, &s, err);
    if (r < 0 || stands(&s, s.collect_ms) || stands(&s, s.archive_ms))
        return r;
    *ret_locked_ms = clock_mono_ms();
    r = s3_put(s3, COLLECT_LOCK, "", 0, err);
    if (r >= 0)
        r = look_around(s3, &s, err);
    if (r >= 0 && !stands(&s, s.archive_ms))
        return 1;
    archive_unlock_collect(s3);
    return r;
}

int archive_lock_collect_renew(struct s3 *s3, int64_t *locked_ms, struct err *err)
{
    if (clock_mono_ms() - *locked_ms < RENEW_MS)
        return 0;
    *locked_ms = clock_mono_ms();
    return s3_put(s3, COLLECT_LOCK, "", 0, err);
}

void archive_unlock_collect(struct s3 *s3)
{
    (void)s3_delete(s3, COLLECT_LOCK, NULL);
}
