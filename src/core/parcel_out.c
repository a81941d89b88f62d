#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <zstd.h>

#include "base/fd.h"
#include "core/checkpoints.h"
#include "core/images.h"
#include "core/keeper.h"
#include "core/parcel.h"
#include "core/spec.h"

#define ZSTD_LEVEL 3
#define ANSWER_WAIT_S 60 /* after the last byte */

/* ---- its files ---- */

struct packing {
    ZSTD_CCtx *z;
    struct digest *hash; /* of what comes out */
    struct room room;    /* for what comes out */
    int out;
    uint64_t size;
    void *in, *packed;
};

static void packing_done(struct packing *p)
{
    (void)ZSTD_freeCCtx(p->z);
    digest_free(p->hash);
    room_close(&p->room);
    free(p->in);
    free(p->packed);
}

static int pack(struct packing *p, size_t n, struct err *err)
{
    ZSTD_inBuffer in = { p->in, n, 0 };
    size_t left;
    do {
        ZSTD_outBuffer out = { p->packed, ZSTD_CStreamOutSize(), 0 };
        left = ZSTD_compressStream2(p->z, &out, &in, n ? ZSTD_e_continue : ZSTD_e_end);
        if (ZSTD_isError(left) || digest_add(p->hash, p->packed, out.pos) < 0)
            return err_set(err, EIO, "cannot pack a checkpoint");
        int r = room_take(&p->room, out.pos, err);
        if (r < 0)
            return r;
        r = fd_write_full(p->out, p->packed, out.pos);
        if (r < 0)
            return r == -ENOSPC ? err_fail(err, FAIL_NO_SPACE, "the disk is full")
                                : err_set(err, -r, "cannot write a checkpoint");
        p->size += out.pos;
    } while (n ? in.pos < in.size : left > 0);
    return 0;
}

static int pack_all(struct packing *p, int in, struct err *err)
{
    for (;;) {
        ssize_t n = read(in, p->in, ZSTD_CStreamInSize());
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, errno, "cannot read a checkpoint");
        int r = pack(p, (size_t)n, err);
        if (r < 0 || n == 0)
            return r;
    }
}

static int run(struct core *core, const char *checkpoint, struct packing *p, struct err *err)
{
    struct keeper_request q = { .version = KEEPER_VERSION, .op = KEEPER_POINT_READ };
    _cleanup_fd_ int in = -1, sock = -1;
    memcpy(q.point, checkpoint, sizeof(q.point));
    int r = keeper_ask_piped(core, &q, NULL, 0, &in, &sock, err);
    if (r < 0)
        return r;
    r = pack_all(p, in, err);
    (void)close(take_fd(in));
    return r < 0 ? r : keeper_ask_finish(sock, ANSWER_WAIT_S, "read the checkpoint", NULL, err);
}

/* Into a file without a name, beside the blobs: a daemon that dies leaves nothing. */
static int read_files(struct core *core, const char *owner, const char *checkpoint,
                      struct image_part *ret_files, struct err *err)
{
    _cleanup_fd_ int out = openat(core->blobs.partial, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (out < 0)
        return err_set(err, errno, "cannot make room for a checkpoint");
    _cleanup_(packing_done) struct packing p = { .z = ZSTD_createCCtx(),
                                                 .hash = digest_begin(),
                                                 .out = out,
                                                 .in = malloc(ZSTD_CStreamInSize()),
                                                 .packed = malloc(ZSTD_CStreamOutSize()) };
    if (!p.z || !p.hash || !p.in || !p.packed)
        return err_set(err, ENOMEM, "cannot pack a checkpoint");
    room_open(core, owner, &p.room);
    (void)ZSTD_CCtx_setParameter(p.z, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    int r = run(core, checkpoint, &p, err);
    if (r >= 0 && digest_end(take_ptr(p.hash), ret_files->digest) < 0)
        r = err_set(err, EIO, "cannot hash a checkpoint");
    if (r < 0)
        return r;
    ret_files->size = p.size;
    ret_files->fd = take_fd(out);
    return 0;
}

/* ---- what it lies on ---- */

static size_t depth_of(struct images *im, const struct layer *l)
{
    size_t n = 0;
    for (; l && n < OCI_LAYERS_MAX; n++)
        l = l->parent[0] ? images_layer(im, l->parent) : NULL;
    return n;
}

/* Lowest first; none for a sandbox without an image. */
static int layers_of(struct core *core, const char *tree, struct image_layer **ret_layers,
                     size_t *ret_n, struct err *err)
{
    struct images *im = &core->images;
    if (strcmp(tree, KEEPER_IMAGE_NONE) == 0)
        return 0;
    (void)pthread_mutex_lock(&im->lock);
    const struct layer *l = images_layer_of_tree(im, tree);
    size_t n = depth_of(im, l);
    struct image_layer *layers = calloc(n + 1, sizeof(*layers));
    for (size_t i = n; layers && l && i-- > 0;) {
        layers[i] = l->l;
        l = l->parent[0] ? images_layer(im, l->parent) : NULL;
    }
    (void)pthread_mutex_unlock(&im->lock);
    if (!layers)
        return err_set(err, ENOMEM, "cannot allocate layers");
    if (n == 0) {
        free(layers);
        return err_fail(err, FAIL_IMAGE_NOT_FOUND, "the image it lies on is not here");
    }
    *ret_layers = layers;
    *ret_n = n;
    return 0;
}

/* ---- its head ---- */

/* What a sandbox was, without what belongs to this place. */
static json_t *spec_of(const struct checkpoint *c, struct err *err)
{
    _cleanup_free_ char *text = parcel_spec_text(c->spec, err);
    if (!text)
        return NULL;
    json_t *o = json_loads(text, 0, NULL);
    if (!o)
        (void)err_set(err, ENOMEM, "cannot describe a checkpoint");
    return o;
}

static json_t *layers_json(const struct image_layer *layers, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:I}", "digest", layers[i].digest, "media_type",
                            layers[i].media_type, "diff_id", layers[i].diff_id, "size",
                            (json_int_t)layers[i].compressed_bytes));
    return list;
}

static char *head_text(const struct checkpoint *c, const struct image_layer *layers, size_t n,
                       const struct image_part *files, struct err *err)
{
    _cleanup_free_ char *pairs = pairs_text(&c->metadata);
    json_t *metadata = pairs ? json_loads(pairs, 0, NULL) : NULL;
    json_t *spec = spec_of(c, err);
    json_t *o =
        !spec || !metadata
            ? NULL
            : json_pack("{s:s, s:i, s:s, s:s, s:o, s:I, s:o, s:o, s:{s:s, s:I}}", "format",
                        PARCEL_FORMAT, "version", PARCEL_VERSION, "name", c->name, "comment",
                        c->comment, "metadata", metadata, "created_ms", (json_int_t)c->created_ms,
                        "spec", spec, "layers", layers_json(layers, n), "files", "digest",
                        files->digest, "size", (json_int_t)files->size);
    if (!spec || !metadata) { /* else packing took them */
        json_decref(spec);
        json_decref(metadata);
    }
    if (!o && spec)
        (void)err_set(err, ENOMEM, "cannot describe a checkpoint");
    char *text = o ? json_dumps(o, JSON_INDENT(1)) : NULL;
    json_decref(o);
    return text;
}

int parcel_pack(struct core *core, const char *owner, const char *who, bool with_image,
                struct image_export **ret_exp, struct err *err)
{
    _cleanup_(checkpoint_done) struct checkpoint c = { 0 };
    _cleanup_free_ struct image_layer *layers = NULL;
    struct image_part files = { .fd = -1 };
    struct archive_busy *pin = NULL;
    size_t n = 0;
    int r = checkpoint_get(core, owner, NULL, who, &c, err);
    if (r >= 0)
        r = layers_of(core, c.tree, &layers, &n, err);
    if (r >= 0)
        r = checkpoints_pin(core, &c, &pin, err);
    if (r >= 0)
        r = read_files(core, c.owner, c.id, &files, err);
    checkpoints_unpin(core, pin);
    if (r < 0)
        return r;
    char *head = head_text(&c, layers, n, &files, err);
    if (!head) {
        (void)close(files.fd);
        return -ENOMEM;
    }
    return image_export_parts(core, c.owner, PARCEL_HEAD, head, layers, with_image ? n : 0, &files,
                              ret_exp, err);
}
