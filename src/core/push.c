#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "base/log.h"
#include "core/transfer_private.h"

#define LOG_MODULE "push"

/* The repository that the image's own name has at the same registry: its layers are likely there. */
static const char *mount_from(const struct transfer *t, struct reference *other)
{
    const char *name = t->image.name;
    if (reference_parse(name, strlen(name), t->core->registries.default_host, other, NULL) < 0 ||
        strcmp(other->host, t->ref.host) != 0 || strcmp(other->repo, t->ref.repo) == 0)
        return NULL;
    return other->repo;
}

struct upload {
    struct transfer *t;
    size_t i;
};

static void on_sent(void *arg, uint64_t bytes)
{
    const struct upload *u = arg;
    transfer_set_bytes(u->t, u->i, bytes);
}

static int send_layer(struct transfer *t, size_t i, struct err *err)
{
    const struct descriptor *blob = &t->layers[i].blob;
    struct upload u = { t, i };
    struct reference other;
    _cleanup_fd_ int fd = -1;
    uint64_t size = 0;
    int r = registry_blob_has(t->registry, blob->digest, err);
    if (r < 0)
        return r;
    if (r > 0) {
        transfer_set_ready(t, i, TRANSFER_EXISTS);
        return 0;
    }
    r = blob_open(t->core, blob->digest, &fd, &size, err);
    if (r < 0)
        return r;
    if (size != blob->size)
        return err_set(err, EBADMSG, "layer %.19s has %llu bytes here where %llu were recorded",
                       blob->digest, (unsigned long long)size, (unsigned long long)blob->size);
    transfer_set_state(t, i, TRANSFER_UPLOADING);
    r = registry_blob_put(t->registry, blob, fd, mount_from(t, &other), on_sent, &u, err);
    if (r >= 0)
        transfer_set_ready(t, i, r > 0 ? TRANSFER_EXISTS : TRANSFER_DONE);
    return r;
}

/* The configuration is a text here and a blob there. */
static int send_config(struct transfer *t, const struct descriptor *d, const char *text,
                       struct err *err)
{
    int r = registry_blob_has(t->registry, d->digest, err);
    if (r != 0)
        return r;
    if (strlen(text) != d->size)
        return err_set(err, EBADMSG, "the image's configuration is not what its manifest says");
    _cleanup_fd_ int fd = memfd_create("config", MFD_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot make a file in memory");
    r = fd_write_full(fd, text, strlen(text));
    if (r < 0)
        return err_set(err, -r, "cannot write a file in memory");
    return registry_blob_put(t->registry, d, fd, NULL, NULL, NULL, err);
}

static bool all_here(struct core *core, const struct manifest *m)
{
    for (size_t i = 0; i < m->nlayers; i++)
        if (!blob_exists(core, m->layers[i].digest, NULL))
            return false;
    return true;
}

/* A manifest over the layers as they lie here. An image may have come with others of the same
 * content: a layer that was there already was not fetched in its second packing. */
static int remake(struct transfer *t, const struct manifest *m, char **ret_text, struct err *err)
{
    _cleanup_free_ struct image_layer *layers = NULL;
    struct oci_blob config = { .size = m->config.size };
    size_t n = 0;
    int r = image_layers(t->core, &t->image, &layers, &n, err);
    if (r < 0)
        return r;
    _cleanup_free_ struct oci_blob *blobs = calloc(n ? n : 1, sizeof(*blobs));
    if (!blobs)
        return err_set(err, ENOMEM, "cannot allocate a manifest");
    memcpy(config.digest, m->config.digest, sizeof(config.digest));
    (void)snprintf(config.media_type, sizeof(config.media_type), "%s", OCI_CONFIG);
    for (size_t i = 0; i < n; i++) {
        if (!blob_exists(t->core, layers[i].digest, &blobs[i].size))
            return err_fail_as(err, ENODATA, FAIL_INVALID_IMAGE,
                               "the layers of '%s' were not kept when it was made; import or pull "
                               "it again",
                               t->image.name);
        memcpy(blobs[i].digest, layers[i].digest, sizeof(blobs[i].digest));
        memcpy(blobs[i].media_type, layers[i].media_type, sizeof(blobs[i].media_type));
    }
    *ret_text = oci_manifest_text(&config, blobs, n);
    return *ret_text ? 0 : err_set(err, ENOMEM, "cannot allocate a manifest");
}

static int push(struct transfer *t, struct manifest *m, char **manifest, const char *config,
                struct err *err)
{
    int r = manifest_parse(*manifest, strlen(*manifest), NULL, m, err);
    if (r >= 0 && !all_here(t->core, m)) {
        char *other = NULL;
        r = remake(t, m, &other, err);
        if (r < 0)
            return r;
        free(*manifest);
        *manifest = other;
        manifest_done(m);
        r = manifest_parse(*manifest, strlen(*manifest), NULL, m, err);
    }
    if (r >= 0)
        r = transfer_set_layers(t, m->layers, m->nlayers, err);
    if (r >= 0)
        r = transfer_connect(t, true, err);
    if (r >= 0)
        r = transfer_move_layers(t, err);
    for (size_t i = 0; i < m->nlayers && r >= 0; i++)
        r = transfer_wait_layer(t, i, err);
    if (r >= 0)
        r = send_config(t, &m->config, config, err);
    if (r >= 0)
        r = registry_manifest_put(t->registry, reference_what(&t->ref), m->media_type, *manifest,
                                  strlen(*manifest), err);
    if (r >= 0)
        r = digest_of(*manifest, strlen(*manifest), t->digest);
    return r;
}

static int push_run(struct transfer *t, struct err *err)
{
    struct manifest m = { 0 };
    _cleanup_free_ char *manifest = NULL, *config = NULL;
    char where[REFERENCE_TEXT_MAX];
    struct image_hold hold;
    /* The hold keeps the blobs if the image is removed meanwhile. */
    image_hold_begin(t->core, t->config.owner, &hold);
    int r = image_texts(t->core, &t->image, &manifest, &config, err);
    if (r >= 0)
        r = push(t, &m, &manifest, config, err);
    if (r < 0)
        atomic_store(&t->cancel, true);
    transfer_join(t);
    image_hold_end(t->core, &hold);
    if (r >= 0)
        log_info("pushed image=\"%s\" to=%s digest=%s", t->image.name,
                 reference_text(&t->ref, where), t->digest);
    manifest_done(&m);
    return r;
}

/* A name that says no host is looked for at Docker Hub, but nothing is sent there unasked. */
static int check_host(const struct core *core, const char *image, struct err *err)
{
    struct reference ref;
    const char *host = core->registries.default_host;
    if (host && strcmp(host, REGISTRY_USUAL) == 0)
        host = NULL;
    return reference_parse(image, strlen(image), host, &ref, err);
}

int push_start(struct core *core, const struct transfer_config *config, struct transfer **ret_t,
               struct err *err)
{
    _cleanup_(transfer_freep) struct transfer *t = NULL;
    struct transfer_config c = *config;
    struct image image;
    int r = image_resolve(core, config->owner, config->name, &image, NULL, err);
    if (r < 0)
        return r;
    if (!c.image || !*c.image)
        c.image = image.name;
    r = check_host(core, c.image, err);
    if (r >= 0)
        r = transfer_new(core, &c, &t, err);
    if (r >= 0 && t->ref.digest[0])
        r = err_fail(err, FAIL_INVALID_REFERENCE,
                     "an image is pushed to a tag, not to a digest: its digest is its content's");
    if (r < 0)
        return r;
    t->image = image;
    t->run = push_run;
    t->move = send_layer;
    r = transfer_start(t, err);
    if (r >= 0)
        *ret_t = take_ptr(t);
    return r;
}
