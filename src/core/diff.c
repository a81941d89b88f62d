/* A sandbox's changes as a layer: the keeper has them written as a tar, here they are hashed and
 * packed while they come. gzip, because every tool that takes layers takes that. */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/fd.h"
#include "core/images.h"
#include "core/keeper.h"

#define BLOCK (256 * 1024)
#define GZIP_LEVEL 3     /* half again as fast as the usual 6, a twentieth larger */
#define GZIP_WINDOW 31   /* the largest, with gzip's own head instead of zlib's */
#define GZIP_MEMORY 8    /* zlib's default */
#define ANSWER_WAIT_S 60 /* after the last byte */

struct packer {
    z_stream z;
    struct digest *hash; /* of what goes in */
    struct blob_writer *out;
    unsigned char in[BLOCK], packed[BLOCK];
};

static int pack(struct packer *p, size_t n, bool last, struct err *err)
{
    p->z.next_in = p->in;
    p->z.avail_in = (uInt)n;
    if (digest_add(p->hash, p->in, n) < 0)
        return err_set(err, EIO, "cannot hash a layer");
    do {
        p->z.next_out = p->packed;
        p->z.avail_out = sizeof(p->packed);
        if (deflate(&p->z, last ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_ERROR)
            return err_set(err, EIO, "cannot pack a layer");
        int r = blob_write(p->out, p->packed, sizeof(p->packed) - p->z.avail_out, err);
        if (r < 0)
            return r;
    } while (p->z.avail_out == 0);
    return 0;
}

static int pack_all(struct packer *p, int in, struct err *err)
{
    for (;;) {
        ssize_t n = read(in, p->in, sizeof(p->in));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, errno, "cannot read a sandbox's changes");
        int r = pack(p, (size_t)n, n == 0, err);
        if (r < 0 || n == 0)
            return r;
    }
}

/* The keeper at work, writing to *ret_in; its answer comes on *ret_sock. */
static int ask(struct core *core, const char *id, int *ret_in, int *ret_sock, struct err *err)
{
    struct keeper_request req;
    memset(&req, 0, sizeof(req));
    req.version = KEEPER_VERSION;
    req.op = KEEPER_DIFF;
    (void)snprintf(req.id, sizeof(req.id), "%s", id);
    return keeper_ask_piped(core, &req, NULL, 0, ret_in, ret_sock, err);
}

static int run(struct core *core, const char *id, struct packer *p, struct err *err)
{
    _cleanup_fd_ int in = -1, sock = -1;
    int r = ask(core, id, &in, &sock, err);
    if (r < 0)
        return r;
    r = pack_all(p, in, err);
    (void)close(take_fd(in));
    if (r < 0)
        return r;
    /* An early end of the tar shows here. */
    return keeper_ask_finish(sock, ANSWER_WAIT_S, "read the sandbox", NULL, err);
}

int image_diff(struct core *core, struct room *room, const char *sandbox_id,
               struct image_layer *ret_layer, struct err *err)
{
    struct image_layer layer = { .media_type = OCI_LAYER_GZIP };
    struct packer *p = calloc(1, sizeof(*p));
    if (!p || deflateInit2(&p->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
                           Z_DEFAULT_STRATEGY) != Z_OK) {
        free(p);
        return err_set(err, ENOMEM, "cannot allocate a layer");
    }
    p->hash = digest_begin();
    int r = p->hash ? blob_begin(core, room, &p->out, err)
                    : err_set(err, ENOMEM, "cannot begin a hash");
    if (r >= 0)
        r = run(core, sandbox_id, p, err);
    if (r >= 0 && digest_end(take_ptr(p->hash), layer.diff_id) < 0)
        r = err_set(err, EIO, "cannot hash a layer");
    if (r >= 0)
        r = blob_finish(take_ptr(p->out), NULL, layer.digest, &layer.compressed_bytes, err);
    blob_abort(p->out);
    digest_free(p->hash);
    (void)deflateEnd(&p->z);
    free(p);
    if (r >= 0)
        *ret_layer = layer;
    return r;
}
