#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "core/keeper.h"
#include "core/private.h"

#define PIPE_BYTES (1024 * 1024) /* the most an ordinary user may ask for; fewer switches */
#define ABORT_WAIT_S 60          /* the keeper removes what it had unpacked */

/* The tar goes to the keeper through a pipe while it arrives; nothing is stored here. The tree's
 * name is random and not its hash: the keeper unpacks it before the hash is known. */
struct image_import {
    struct core *core;
    char name[IMAGE_NAME_MAX];
    char tree[KEEPER_IMAGE_SIZE];
    int sock, pipe;
    bool refused; /* the keeper stopped reading: its answer says why */
    EVP_MD_CTX *hash;
};

static void import_free(struct image_import *imp)
{
    if (!imp)
        return;
    if (imp->sock >= 0)
        (void)close(imp->sock);
    if (imp->pipe >= 0)
        (void)close(imp->pipe);
    EVP_MD_CTX_free(imp->hash);
    free(imp);
}
DEFINE_FREEP(struct image_import *, import_free)

int image_import_begin(struct core *core, const char *name, struct image_import **ret_imp,
                       struct err *err)
{
    if (!image_name_valid(name))
        return err_name(err, EINVAL, "invalid_field",
                        "an image's name must be 1 to %d of a-z, 0-9, '.', '_', '/', ':' and "
                        "'-', a letter or digit first",
                        IMAGE_NAME_MAX - 1);
    _cleanup_(import_freep) struct image_import *imp = calloc(1, sizeof(*imp));
    if (!imp)
        return err_set(err, ENOMEM, "cannot allocate an import");
    imp->core = core;
    imp->sock = imp->pipe = -1;
    (void)snprintf(imp->name, sizeof(imp->name), "%s", name);
    imp->hash = EVP_MD_CTX_new();
    if (!imp->hash || EVP_DigestInit_ex(imp->hash, EVP_sha256(), NULL) != 1)
        return err_set(err, ENOMEM, "cannot begin a hash");
    unsigned char raw[(KEEPER_IMAGE_SIZE - 1) / 2];
    int r = random_bytes(raw, sizeof(raw));
    if (r < 0)
        return err_set(err, -r, "cannot make a tree's name");
    hex_encode(raw, sizeof(raw), imp->tree);

    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    imp->pipe = ends[1];
    _cleanup_fd_ int read_end = ends[0];
    (void)fcntl(imp->pipe, F_SETPIPE_SZ, PIPE_BYTES);

    struct keeper_request req;
    memset(&req, 0, sizeof(req));
    req.version = KEEPER_VERSION;
    req.op = KEEPER_IMAGE_PUT;
    memcpy(req.image, imp->tree, sizeof(req.image));
    r = keeper_ask_begin(core, &req, &read_end, 1, &imp->sock, err);
    if (r < 0)
        return r;
    *ret_imp = take_ptr(imp);
    return 0;
}

int image_import_write(struct image_import *imp, const void *p, size_t n, struct err *err)
{
    if (EVP_DigestUpdate(imp->hash, p, n) != 1)
        return err_set(err, EIO, "cannot hash an image");
    if (imp->refused)
        return 0;
    int r = fd_write_full(imp->pipe, p, n);
    if (r == -EPIPE) {
        imp->refused = true;
        return 0; /* image_import_finish reads why */
    }
    return r < 0 ? err_set(err, -r, "cannot pass an image on") : 0;
}

static int finish(struct image_import *imp, struct image *ret_image, struct err *err)
{
    (void)close(take_fd(imp->pipe)); /* the end of the tar */
    struct keeper_reply reply;
    int r = keeper_ask_next(imp->sock, &reply);
    if (r < 0)
        return err_name(err, ENOTCONN, "keeper_unavailable",
                        "warren-keeper went away while it unpacked the image; try again");
    r = keeper_ask_result(&reply, err);
    if (r < 0)
        return r;

    struct image image = { .size_bytes = reply.size_bytes, .created_ms = clock_now_ms() };
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    if (EVP_DigestFinal_ex(imp->hash, digest, &len) != 1 || len != 32)
        return err_set(err, EIO, "cannot hash an image");
    memcpy(image.digest, "sha256:", 7);
    hex_encode(digest, len, image.digest + 7);
    memcpy(image.name, imp->name, sizeof(image.name));
    memcpy(image.tree, imp->tree, sizeof(image.tree));
    r = image_record(imp->core, &image, err);
    if (r >= 0)
        *ret_image = image;
    return r;
}

int image_import_finish(struct image_import *imp, struct image *ret_image, struct err *err)
{
    int r = finish(imp, ret_image, err);
    if (r < 0)
        (void)keeper_ask_image_rm(imp->core, imp->tree, NULL);
    import_free(imp);
    return r;
}

void image_import_abort(struct image_import *imp)
{
    if (!imp)
        return;
    /* A tar that ends early may look whole: let the keeper finish, then remove the tree. */
    static const struct timeval wait = { .tv_sec = ABORT_WAIT_S };
    struct keeper_reply reply;
    (void)close(take_fd(imp->pipe));
    (void)setsockopt(imp->sock, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    (void)keeper_ask_next(imp->sock, &reply);
    (void)keeper_ask_image_rm(imp->core, imp->tree, NULL);
    import_free(imp);
}
