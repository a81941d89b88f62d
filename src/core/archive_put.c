/* A checkpoint on its way to the bucket: the image's layers, its files, then the manifest that makes it an archive. */
#include <errno.h>
#include <string.h>

#include "base/hex.h"
#include "base/log.h"
#include "core/archive_private.h"
#include "core/images.h"
#include "core/keeper.h"

#define LOG_MODULE "archive"
#define ANSWER_WAIT_S 60 /* after the last byte */

/* ---- layers ---- */

static int find_layers(struct core *core, const char *tree, struct archive_manifest *m,
                       struct err *err)
{
    struct images *im = &core->images;
    size_t n = 0;
    (void)pthread_mutex_lock(&im->lock);
    const struct layer *top = images_layer_of_tree(im, tree);
    for (const struct layer *l = top; l && n < OCI_LAYERS_MAX; n++)
        l = l->parent[0] ? images_layer(im, l->parent) : NULL;
    m->layers = top ? calloc(n, sizeof(*m->layers)) : NULL;
    m->n_layers = m->layers ? n : 0;
    for (const struct layer *l = top; m->layers && l && n-- > 0;) {
        memcpy(m->layers[n].digest, l->l.digest, DIGEST_SIZE);
        memcpy(m->layers[n].diff_id, l->l.diff_id, DIGEST_SIZE);
        memcpy(m->layers[n].media_type, l->l.media_type, sizeof(m->layers[n].media_type));
        l = l->parent[0] ? images_layer(im, l->parent) : NULL;
    }
    (void)pthread_mutex_unlock(&im->lock);
    return m->layers ? 0 : err_set(err, ENOENT, "cannot find the image below the checkpoint");
}

/* It was sent by an earlier archive, and is whole. */
static bool sent_before(struct s3 *s3, const char *key, const struct archive_known *known,
                        struct archive_stream *ret_s)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(ARCHIVE_MANIFEST_MAX);
    struct archive_stream s;
    if (s3_get(s3, key, &text, NULL) < 0 ||
        archive_stream_read(text.data ? text.data : "", text.len, &s, NULL) < 0)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!archive_known_has(known, &s.pieces[i])) {
            archive_stream_done(&s);
            return false;
        }
    *ret_s = s;
    return true;
}

static bool same_digest(const char *digest, const uint8_t raw[CHUNK_DIGEST])
{
    char hex[ARCHIVE_HEX];
    hex_encode(raw, CHUNK_DIGEST, hex);
    return strcmp(digest + DIGEST_HEX, hex) == 0;
}

static int send_layer(struct archive_run *run, struct archive_layer *layer,
                      const struct archive_known *known, struct err *err)
{
    struct s3 *s3 = run->core->archives.s3;
    _cleanup_(buf_done) struct buf text = BUF_INIT(ARCHIVE_MANIFEST_MAX);
    char key[ARCHIVE_KEY];
    uint64_t size = 0;
    int fd = -1;
    archive_key_layer(layer->digest, key);
    if (sent_before(s3, key, known, &layer->blob)) {
        if (same_digest(layer->digest, layer->blob.digest))
            return 0;
        archive_stream_done(&layer->blob);
    }
    int r = blob_open(run->core, layer->digest, &fd, &size, err);
    if (r < 0)
        return err_fail_as(err, ENOENT, FAIL_INVALID_IMAGE,
                           "the layer '%s' of the checkpoint's image was not kept when it was made",
                           layer->digest);
    run->at.total = size;
    run->at.bytes = 0;
    r = archive_stream_send(run, fd, known, &layer->blob, err);
    if (r >= 0 && !same_digest(layer->digest, layer->blob.digest))
        r = err_set(err, EBADMSG, "the layer '%s' is damaged here", layer->digest);
    if (r >= 0)
        r = archive_stream_write(&layer->blob, &text, err);
    return r < 0 ? r : s3_put(s3, key, text.data, text.len, err);
}

/* ---- files ---- */

static int send_files(struct archive_run *run, const struct checkpoint *c, const char *stage,
                      uint32_t flags, const struct archive_known *known,
                      struct archive_stream *ret_s, struct err *err)
{
    struct keeper_request q = { .version = KEEPER_VERSION, .op = KEEPER_POINT_READ };
    int in = -1;
    _cleanup_fd_ int sock = -1;
    memcpy(q.point, c->id, sizeof(q.point));
    q.flags = flags;
    run->at.stage = stage;
    run->at.bytes = run->at.total = 0;
    int r = archive_told(run, true, err);
    if (r >= 0)
        r = keeper_ask_piped(run->core, &q, NULL, 0, &in, &sock, err);
    if (r < 0)
        return r;
    r = archive_stream_send(run, in, known, ret_s, err);
    /* An early end of the stream shows here. */
    return r < 0 ? r : keeper_ask_finish(sock, ANSWER_WAIT_S, "read the checkpoint", NULL, err);
}

/* ---- all of it ---- */

static int check_stream(const struct archive_stream *s, const struct archive_known *known,
                        struct err *err)
{
    char key[ARCHIVE_KEY];
    for (size_t i = 0; i < s->n; i++) {
        if (archive_known_has(known, &s->pieces[i]))
            continue;
        archive_key_piece(s->pieces[i].digest, key);
        return err_fail(err, FAIL_ARCHIVE_FAILED,
                        "the object storage took '%s', and does not have it; try again", key);
    }
    return 0;
}

static int check_pieces(struct archive_run *run, const struct archive_manifest *m, struct err *err)
{
    _cleanup_(archive_known_done) struct archive_known now = { .n = 0 };
    int r = archive_known_load(run->core->archives.s3, &now, err);
    for (size_t i = 0; r >= 0 && i < m->n_layers; i++)
        r = check_stream(&m->layers[i].blob, &now, err);
    if (r >= 0)
        r = check_stream(&m->files, &now, err);
    return r < 0 || !m->has_memory ? r : check_stream(&m->memory, &now, err);
}

/* What was sent is there: only then may anybody count on it. */
static int check_all(struct archive_run *run, const struct archive_manifest *m, const char *key,
                     const struct buf *text, struct err *err)
{
    _cleanup_(buf_done) struct buf back = BUF_INIT(ARCHIVE_MANIFEST_MAX);
    run->at.stage = "check";
    run->at.bytes = run->at.total = 0;
    int r = archive_told(run, true, err);
    if (r >= 0)
        r = s3_get(run->core->archives.s3, key, &back, err);
    if (r >= 0 && (back.len != text->len || memcmp(back.data, text->data, text->len) != 0))
        r = err_fail(err, FAIL_ARCHIVE_FAILED,
                     "the object storage gives back another manifest than it got; try again");
    return r < 0 ? r : check_pieces(run, m, err);
}

int archive_verify(struct archive_run *run, const struct checkpoint *c, struct err *err)
{
    struct archive_manifest m = { .n_layers = 0 };
    int r = archive_manifest_own(run->core->archives.s3, c, &m, err);
    if (r >= 0)
        r = check_pieces(run, &m, err);
    archive_manifest_done(&m);
    return r;
}

static uint64_t stored(const struct archive_manifest *m)
{
    return archive_stream_stored(&m->files) + archive_stream_stored(&m->memory);
}

static int send_all(struct archive_run *run, struct archive_manifest *m, struct err *err)
{
    _cleanup_(archive_known_done) struct archive_known known = { .n = 0 };
    int r = archive_known_load(run->core->archives.s3, &known, err);
    run->at.stage = "image";
    for (size_t i = 0; r >= 0 && i < m->n_layers; i++)
        r = send_layer(run, &m->layers[i], &known, err);
    if (r >= 0)
        r = send_files(run, &m->c, "files", 0, &known, &m->files, err);
    m->has_memory = m->c.memory;
    if (r < 0 || !m->has_memory)
        return r;
    return send_files(run, &m->c, "memory", KEEPER_POINT_MEMORY, &known, &m->memory, err);
}

static int write_locked(struct archive_run *run, struct archive_manifest *m,
                        char ret_manifest[DIGEST_SIZE], struct err *err)
{
    struct s3 *s3 = run->core->archives.s3;
    _cleanup_(buf_done) struct buf text = BUF_INIT(ARCHIVE_MANIFEST_MAX);
    char key[ARCHIVE_KEY];
    archive_key_manifest(m->c.owner, m->c.id, key);
    int r = send_all(run, m, err);
    if (r >= 0)
        r = archive_manifest_write(m, &text, err);
    if (r >= 0 && digest_of(text.data, text.len, ret_manifest) < 0)
        r = err_set(err, EIO, "cannot hash a manifest");
    if (r >= 0)
        r = s3_put(s3, key, text.data, text.len, err);
    if (r < 0)
        return r;
    r = check_all(run, m, key, &text, err);
    if (r < 0)
        (void)s3_delete(s3, key, NULL);
    return r;
}

int archive_write(struct archive_run *run, const struct checkpoint *c, uint64_t *ret_stored,
                  char ret_manifest[DIGEST_SIZE], struct err *err)
{
    struct archive_manifest m = { .c = *c }; /* borrowed: c's texts are not freed here */
    struct image_hold hold;
    image_hold_begin(run->core, c->owner, &hold);
    int r = find_layers(run->core, c->tree, &m, err);
    if (r >= 0)
        r = archive_lock(run, c->id, err);
    if (r >= 0) {
        r = write_locked(run, &m, ret_manifest, err);
        archive_unlock(run);
    }
    image_hold_end(run->core, &hold);
    if (r >= 0) {
        *ret_stored = stored(&m);
        log_info("archived checkpoint=%s pieces=%llu sent=%llu bytes=%llu", c->id,
                 (unsigned long long)run->at.pieces, (unsigned long long)run->at.sent,
                 (unsigned long long)run->at.moved_bytes);
    }
    m.c = (struct checkpoint){ 0 };
    archive_manifest_done(&m);
    return r;
}
