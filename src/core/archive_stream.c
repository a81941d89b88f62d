/* A stream on its way to the bucket or back. Several pieces travel at once: each waits for the network, not for us. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/archive_private.h"
#include "core/chunker.h"

#define LANES 4
#define TELL_EVERY_MS 200

int archive_told(struct archive_run *run, bool now, struct err *err)
{
    int64_t at = clock_mono_ms();
    if (atomic_load(&run->core->stopping))
        return err_fail(err, FAIL_CANCELLED, "the daemon is being stopped");
    int r = archive_lock_renew(run, err);
    if (r < 0)
        return r;
    if (!run->tell || (!now && at - run->told_ms < TELL_EVERY_MS))
        return 0;
    run->told_ms = at;
    return run->tell->fn(run->tell->ctx, &run->at) ? 0 : err_fail(err, FAIL_CANCELLED, "cancelled");
}

/* A place for one piece on its way. */
struct slot {
    enum { SLOT_FREE, SLOT_READY, SLOT_MOVING, SLOT_DONE } state;
    struct archive_piece piece;
    char *packed;
};

struct lanes {
    struct s3 *s3;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot slots[LANES];
    pthread_t threads[LANES];
    unsigned n_threads;
    bool fetch, stop;
    int r; /* the first failure */
    struct err err;
};

static int move_piece(struct lanes *l, struct slot *s, struct err *err)
{
    char key[ARCHIVE_KEY];
    archive_key_piece(s->piece.digest, key);
    if (!l->fetch)
        return s3_put(l->s3, key, s->packed, s->piece.packed, err);
    struct buf b = BUF_INIT(s->piece.packed);
    int r = s3_get(l->s3, key, &b, err);
    if (r == -ENOENT)
        r = err_fail(err, FAIL_ARCHIVE_CORRUPT, "the archive is damaged: its piece '%s' is missing",
                     key);
    if (r >= 0 && b.len != s->piece.packed)
        r = err_fail(err, FAIL_ARCHIVE_CORRUPT,
                     "the archive is damaged: its piece '%s' has %zu bytes instead of %u", key,
                     b.len, s->piece.packed);
    if (r == -EMSGSIZE)
        r = err_fail(err, FAIL_ARCHIVE_CORRUPT,
                     "the archive is damaged: its piece '%s' is too long", key);
    if (r >= 0)
        memcpy(s->packed, b.data, b.len);
    buf_done(&b);
    return r;
}

static void *lane(void *arg)
{
    struct lanes *l = arg;
    (void)pthread_mutex_lock(&l->lock);
    for (;;) {
        struct slot *s = NULL;
        for (size_t i = 0; i < LANES && !s && l->r >= 0; i++)
            if (l->slots[i].state == SLOT_READY)
                s = &l->slots[i];
        if (!s && (l->stop || l->r < 0))
            break;
        if (!s) {
            (void)pthread_cond_wait(&l->changed, &l->lock);
            continue;
        }
        s->state = SLOT_MOVING;
        (void)pthread_mutex_unlock(&l->lock);
        struct err err = ERR_INIT;
        int r = move_piece(l, s, &err);
        (void)pthread_mutex_lock(&l->lock);
        s->state = l->fetch ? SLOT_DONE : SLOT_FREE;
        if (r < 0 && l->r >= 0) {
            l->r = r;
            l->err = err;
        }
        (void)pthread_cond_broadcast(&l->changed);
    }
    (void)pthread_mutex_unlock(&l->lock);
    return NULL;
}

static int lanes_start(struct lanes *l, struct s3 *s3, bool fetch, struct err *err)
{
    *l = (struct lanes){ .s3 = s3, .fetch = fetch };
    (void)pthread_mutex_init(&l->lock, NULL);
    (void)pthread_cond_init(&l->changed, NULL);
    int r = 0;
    for (size_t i = 0; i < LANES; i++)
        if (!(l->slots[i].packed = malloc(CHUNK_PACKED_MAX)))
            r = err_set(err, ENOMEM, "cannot allocate pieces");
    while (r >= 0 && l->n_threads < LANES) {
        r = thread_start(&l->threads[l->n_threads], lane, l, err);
        l->n_threads += r >= 0;
    }
    return r;
}

/* What is ready still goes, unless something failed: here (r), or in a lane. */
static int lanes_end(struct lanes *l, int r, struct err *err)
{
    (void)pthread_mutex_lock(&l->lock);
    bool theirs = l->r < 0;
    if (r < 0 && !theirs)
        l->r = r;
    l->stop = true;
    (void)pthread_cond_broadcast(&l->changed);
    (void)pthread_mutex_unlock(&l->lock);
    for (unsigned i = 0; i < l->n_threads; i++)
        (void)pthread_join(l->threads[i], NULL);
    for (size_t i = 0; i < LANES; i++)
        free(l->slots[i].packed);
    (void)pthread_mutex_destroy(&l->lock);
    (void)pthread_cond_destroy(&l->changed);
    if (r < 0 && !theirs)
        return r;
    if (l->r < 0 && err)
        *err = l->err;
    return l->r;
}

/* ---- there ---- */

static int hand_over(struct lanes *l, const struct archive_piece *p, const char *packed)
{
    int r = 0;
    (void)pthread_mutex_lock(&l->lock);
    for (struct slot *s = NULL; !s && r >= 0;) {
        for (size_t i = 0; i < LANES && !s; i++)
            if (l->slots[i].state == SLOT_FREE)
                s = &l->slots[i];
        r = l->r;
        if (r >= 0 && s) {
            s->piece = *p;
            memcpy(s->packed, packed, p->packed);
            s->state = SLOT_READY;
            (void)pthread_cond_broadcast(&l->changed);
        } else if (r >= 0) {
            (void)pthread_cond_wait(&l->changed, &l->lock);
        }
    }
    (void)pthread_mutex_unlock(&l->lock);
    return r;
}

/* The packed size of a piece that was not packed again. */
static int size_known(const struct archive_known *known, struct archive_piece *p)
{
    size_t lo = 0, hi = known->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = memcmp(known->digests[mid], p->digest, CHUNK_DIGEST);
        if (c == 0) {
            p->packed = (uint32_t)known->sizes[mid];
            return known->sizes[mid] <= CHUNK_PACKED_MAX && p->packed ? 0 : -EPROTO;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return -EPROTO;
}

static int send_all(struct archive_run *run, struct chunker *c, struct lanes *l,
                    const struct archive_known *known, char *packed, struct archive_stream *s,
                    struct err *err)
{
    for (;;) {
        struct chunk_head head;
        int r = chunker_next(c, &head, packed, err);
        if (r < 0)
            return r;
        if (head.kind == CHUNK_END) {
            memcpy(s->digest, head.digest, CHUNK_DIGEST);
            return head.total == s->bytes ? 0 : err_set(err, EPROTO, "bytes were lost");
        }
        struct archive_piece p = { .raw = head.raw, .packed = head.packed };
        memcpy(p.digest, head.digest, CHUNK_DIGEST);
        if (head.kind == CHUNK_KNOWN && size_known(known, &p) < 0)
            return err_set(err, EPROTO, "warren-archive says what it should not");
        if (head.kind == CHUNK_DATA) {
            r = hand_over(l, &p, packed);
            if (r < 0) /* the lane's own failure is told at its end */
                return r;
            run->at.sent++;
            run->at.moved_bytes += p.packed;
        }
        if (archive_stream_add(s, &p) < 0)
            return err_set(err, ENOMEM, "cannot allocate a list of pieces");
        s->bytes += p.raw;
        run->at.pieces++;
        run->at.bytes += p.raw;
        r = archive_told(run, false, err);
        if (r < 0)
            return r;
    }
}

int archive_stream_send(struct archive_run *run, int in, const struct archive_known *known,
                        struct archive_stream *ret_s, struct err *err)
{
    _cleanup_fd_ int own = in;
    _cleanup_(chunker_freep) struct chunker *c = NULL;
    struct archive_stream s = { .n = 0 };
    struct lanes l;
    _cleanup_free_ char *packed = malloc(CHUNK_PACKED_MAX);
    if (!packed)
        return err_set(err, ENOMEM, "cannot allocate a piece");
    int r = chunker_split(run->core, own, (const uint8_t(*)[CHUNK_DIGEST])known->digests, known->n,
                          &c, err);
    (void)close(take_fd(own));
    if (r < 0)
        return r;
    r = lanes_start(&l, run->core->archives.s3, false, err);
    if (r >= 0)
        r = send_all(run, c, &l, known, packed, &s, err);
    r = lanes_end(&l, r, err);
    if (r < 0)
        archive_stream_done(&s);
    else
        *ret_s = s;
    return r;
}

/* ---- and back ---- */

/* Piece i is asked for in slot i % LANES, so they come out in order. */
static void order(struct lanes *l, const struct archive_stream *s, size_t i)
{
    struct slot *slot = &l->slots[i % LANES];
    (void)pthread_mutex_lock(&l->lock);
    slot->piece = s->pieces[i];
    slot->state = SLOT_READY;
    (void)pthread_cond_broadcast(&l->changed);
    (void)pthread_mutex_unlock(&l->lock);
}

static int await(struct lanes *l, size_t i)
{
    struct slot *slot = &l->slots[i % LANES];
    (void)pthread_mutex_lock(&l->lock);
    while (l->r >= 0 && slot->state != SLOT_DONE)
        (void)pthread_cond_wait(&l->changed, &l->lock);
    int r = l->r;
    (void)pthread_mutex_unlock(&l->lock);
    return r;
}

static int fetch_all(struct archive_run *run, struct chunker *c, struct lanes *l,
                     const struct archive_stream *s, struct err *err)
{
    for (size_t i = 0; i < s->n && i < LANES; i++)
        order(l, s, i);
    for (size_t i = 0; i < s->n; i++) {
        struct slot *slot = &l->slots[i % LANES];
        int r = await(l, i);
        if (r < 0)
            return r;
        struct chunk_head head = { .kind = CHUNK_DATA,
                                   .raw = slot->piece.raw,
                                   .packed = slot->piece.packed };
        memcpy(head.digest, slot->piece.digest, CHUNK_DIGEST);
        r = chunker_give(c, &head, slot->packed, err);
        if (r < 0)
            return r;
        run->at.pieces++;
        run->at.sent++;
        run->at.bytes += head.raw;
        run->at.moved_bytes += head.packed;
        if (i + LANES < s->n)
            order(l, s, i + LANES);
        r = archive_told(run, false, err);
        if (r < 0)
            return r;
    }
    struct chunk_head last = { .kind = CHUNK_END, .total = s->bytes };
    memcpy(last.digest, s->digest, CHUNK_DIGEST);
    return chunker_give(c, &last, NULL, err);
}

/* What it found damaged, by name. */
static int name_damage(const struct archive_stream *s, uint64_t piece, struct err *err)
{
    char key[ARCHIVE_KEY];
    if (piece >= s->n)
        return err_fail(err, FAIL_ARCHIVE_CORRUPT,
                        "the archive is damaged: its pieces are right, and not what was archived");
    archive_key_piece(s->pieces[piece].digest, key);
    return err_fail(err, FAIL_ARCHIVE_CORRUPT,
                    "the archive is damaged: its piece '%s' is not what it was", key);
}

int archive_stream_fetch(struct archive_run *run, const struct archive_stream *s, int out,
                         struct err *err)
{
    _cleanup_fd_ int own = out;
    _cleanup_(chunker_freep) struct chunker *c = NULL;
    struct lanes l;
    uint64_t pieces = 0;
    int r = chunker_join(run->core, own, &c, err);
    (void)close(take_fd(own));
    if (r < 0)
        return r;
    r = lanes_start(&l, run->core->archives.s3, true, err);
    if (r >= 0)
        r = fetch_all(run, c, &l, s, err);
    r = lanes_end(&l, r, err);
    if (r < 0 && r != -EPIPE)
        return r;
    r = chunker_end(c, &pieces, err); /* it knows why it went away */
    return r == -EBADMSG ? name_damage(s, pieces, err) : r;
}
