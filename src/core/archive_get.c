/* A checkpoint on its way back from the bucket. It has its name here only when all of it is right. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/log.h"
#include "core/archive_private.h"
#include "core/disk.h"
#include "core/image.h"
#include "core/keeper.h"
#include "core/spec.h"

#define LOG_MODULE "archive"
#define LAY_WAIT_S 3600 /* after the last byte: a large one is written out to the disk */

static int begin_lay(struct core *core, const struct archive_manifest *m, uint32_t flags,
                     int *ret_out, int *ret_sock, struct err *err)
{
    struct keeper_request q = { .version = KEEPER_VERSION, .op = KEEPER_POINT_LAY, .flags = flags };
    struct sandbox_spec spec = { 0 };
    int ends[2];
    int r = spec_from_json(m->c.spec, &spec, err);
    if (r < 0)
        return r;
    memcpy(q.point, m->c.id, sizeof(q.point));
    q.limits = spec_limits(&spec);
    sandbox_spec_done(&spec);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    (void)fcntl(ends[0], F_SETPIPE_SZ, 1024 * 1024);
    r = keeper_ask_begin(core, &q, &ends[0], 1, ret_sock, err);
    (void)close(ends[0]);
    if (r < 0)
        (void)close(ends[1]);
    else
        *ret_out = ends[1];
    return r;
}

static bool hex_is(const char *hex, const uint8_t digest[CHUNK_DIGEST])
{
    char want[ARCHIVE_HEX];
    hex_encode(digest, CHUNK_DIGEST, want);
    return strcmp(hex, want) == 0;
}

/* The keeper's own count of the bytes is the last word: a stream that was cut off at a file's end looks whole to it. */
static int fetch_files(struct archive_run *run, const struct archive_manifest *m,
                       const struct archive_stream *s, const char *stage, uint32_t flags,
                       struct err *err)
{
    struct keeper_reply reply;
    struct err lay = ERR_INIT;
    _cleanup_fd_ int sock = -1;
    int out = -1;
    run->at.stage = stage;
    run->at.bytes = 0;
    run->at.total = s->bytes;
    int r = archive_told(run, true, err);
    if (r >= 0)
        r = begin_lay(run->core, m, flags, &out, &sock, err);
    if (r < 0)
        return r;
    r = archive_stream_fetch(run, s, out, err);
    /* Of one that was cut off, too: whoever tries again at once must find its place free. */
    int laid = keeper_ask_finish(sock, LAY_WAIT_S, "write the checkpoint", &reply, &lay);
    if (r < 0 && r != -EIO)
        return r;
    if (laid < 0) { /* which is why the stream could not go on */
        *err = lay;
        return laid;
    }
    reply.diff_id[sizeof(reply.diff_id) - 1] = '\0';
    if (r >= 0 && !hex_is(reply.diff_id, s->digest))
        r = err_fail(err, FAIL_ARCHIVE_CORRUPT, "the archive did not arrive whole");
    return r;
}

static int forget(struct core *core, const char *id)
{
    struct keeper_request q = { .version = KEEPER_VERSION, .op = KEEPER_POINT_RM };
    memcpy(q.point, id, sizeof(q.point));
    return keeper_ask(core, &q, NULL, NULL);
}

int archive_read(struct archive_run *run, const struct checkpoint *c, struct err *err)
{
    struct archive_manifest m = { .n_layers = 0 };
    int r = disk_admit(run->core, err);
    if (r < 0)
        return r;
    r = archive_manifest_own(run->core->archives.s3, c, &m, err);
    if (r == -ENOENT)
        r = err_fail(err, FAIL_ARCHIVE_CORRUPT,
                     "the archive of checkpoint '%s' is not in the object storage any more", c->id);
    if (r >= 0 && (strcmp(m.c.id, c->id) != 0 || strcmp(m.c.owner, c->owner) != 0))
        r = err_fail(err, FAIL_ARCHIVE_CORRUPT, "the archive is another checkpoint's");
    if (r >= 0)
        r = forget(run->core, c->id); /* what an earlier try may have left */
    /* CRIU reads memory as root: only what this daemon wrote is ever fetched. Without its files it is nobody's, and goes
     * with the next keeper. */
    if (r >= 0 && m.has_memory && c->memory)
        r = fetch_files(run, &m, &m.memory, "memory", KEEPER_POINT_MEMORY, err);
    if (r >= 0)
        r = fetch_files(run, &m, &m.files, "files", 0, err);
    if (r < 0)
        (void)forget(run->core, c->id);
    else
        log_info("fetched checkpoint=%s pieces=%llu bytes=%llu", c->id,
                 (unsigned long long)run->at.pieces, (unsigned long long)run->at.moved_bytes);
    archive_manifest_done(&m);
    return r;
}

/* ---- the image ---- */

struct taking {
    int in;
    struct blob_writer *w;
    int r;
    struct err err;
};

static void *take_blob(void *arg)
{
    struct taking *t = arg;
    char block[64 * 1024];
    for (;;) {
        ssize_t n = read(t->in, block, sizeof(block));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        t->r = blob_write(t->w, block, (size_t)n, &t->err);
        if (t->r < 0)
            break;
    }
    (void)close(t->in); /* the other end sees that */
    return NULL;
}

static int fetch_blob(struct archive_run *run, struct room *room, const struct archive_layer *layer,
                      struct err *err)
{
    struct taking t = { .in = -1 };
    char digest[DIGEST_SIZE];
    uint64_t size;
    pthread_t thread;
    int ends[2];
    int r = blob_begin(run->core, room, &t.w, err);
    if (r < 0)
        return r;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        blob_abort(t.w);
        return err_set(err, errno, "cannot make a pipe");
    }
    t.in = ends[0];
    run->at.bytes = 0;
    run->at.total = layer->blob.bytes;
    r = thread_start(&thread, take_blob, &t, err);
    if (r < 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        blob_abort(t.w);
        return r;
    }
    r = archive_stream_fetch(run, &layer->blob, ends[1], err);
    (void)pthread_join(thread, NULL);
    if (t.r < 0) {
        *err = t.err;
        r = t.r;
    }
    if (r < 0)
        blob_abort(t.w);
    else
        r = blob_finish(t.w, layer->digest, digest, &size, err);
    return r;
}

int archive_read_layers(struct archive_run *run, struct room *room,
                        const struct archive_manifest *m, char ret_tree[KEEPER_IMAGE_SIZE],
                        struct err *err)
{
    char chain[DIGEST_SIZE] = "", below[DIGEST_SIZE] = "";
    struct image_layer made = { .size_bytes = 0 };
    run->at.stage = "image";
    if (m->n_layers == 0)
        return err_fail(err, FAIL_ARCHIVE_CORRUPT, "the archive has no image");
    for (size_t i = 0; i < m->n_layers; i++) {
        const struct archive_layer *l = &m->layers[i];
        int r = digest_chain(below, l->diff_id, chain);
        if (r < 0)
            return err_set(err, EIO, "cannot hash a chain");
        if (image_find_layer(run->core, chain, &made) < 0) {
            r = blob_exists(run->core, l->digest, NULL) ? 0 : fetch_blob(run, room, l, err);
            if (r >= 0)
                r = image_add_layer(run->core, room, below, l->digest, l->media_type, l->diff_id,
                                    &made, err);
            if (r < 0)
                return r;
        }
        memcpy(below, chain, sizeof(below));
    }
    memcpy(ret_tree, made.tree, KEEPER_IMAGE_SIZE);
    return 0;
}
