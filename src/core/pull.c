#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/log.h"
#include "core/disk.h"
#include "core/proof.h"
#include "core/transfer_private.h"

#define LOG_MODULE "pull"
#define BUSY_MS 100 /* between looks at a blob that another pull is fetching */

/* What a pull knows once it has the image's documents. */
struct pull {
    struct transfer *t;
    struct platform platform;
    struct manifest manifest;
    struct buf manifest_text, config_text;
    char (*diff_ids)[SHA_SIZE];
    char (*chains)[DIGEST_SIZE];
    struct image_layer *layers;
    struct proof_set *seen;
    struct room *room;
};

static void pull_done(struct pull *p)
{
    manifest_done(&p->manifest);
    buf_done(&p->manifest_text);
    buf_done(&p->config_text);
    free(p->diff_ids);
    free(p->chains);
    free(p->layers);
    proof_set_free(p->seen);
}

/* ---- the documents ---- */

static int get_manifest(struct pull *p, struct err *err)
{
    struct transfer *t = p->t;
    char type[MEDIA_TYPE_MAX] = "";
    bool index;
    int r = registry_manifest_get(t->registry, reference_what(&t->ref), &p->manifest_text, type,
                                  t->digest, err);
    if (r >= 0)
        r = manifest_is_index(p->manifest_text.data ? p->manifest_text.data : "",
                              p->manifest_text.len, type, &index, err);
    if (r >= 0 && index) {
        struct descriptor entry;
        r = index_choose(p->manifest_text.data, p->manifest_text.len, &p->platform, &entry, err);
        if (r < 0)
            return r;
        buf_clear(&p->manifest_text);
        r = registry_manifest_get(t->registry, entry.digest, &p->manifest_text, type, t->digest,
                                  err);
    }
    if (r < 0)
        return r;
    return manifest_parse(p->manifest_text.data ? p->manifest_text.data : "", p->manifest_text.len,
                          type, &p->manifest, err);
}

static int get_config(struct pull *p, struct err *err)
{
    size_t n = p->manifest.nlayers;
    int r = registry_blob_read(p->t->registry, &p->manifest.config, &p->config_text, err);
    if (r >= 0)
        r = config_check(p->config_text.data ? p->config_text.data : "", p->config_text.len, n,
                         &p->platform, &p->diff_ids, err);
    if (r < 0)
        return r;
    p->chains = calloc(n, sizeof(*p->chains));
    p->layers = calloc(n, sizeof(*p->layers));
    if (!p->chains || !p->layers)
        return err_set(err, ENOMEM, "cannot allocate a list of layers");
    for (size_t i = 0; i < n && r >= 0; i++)
        r = digest_chain(i ? p->chains[i - 1] : "", p->diff_ids[i], p->chains[i]);
    return r < 0 ? err_set(err, -r, "cannot hash a chain of layers") : 0;
}

/* ---- one layer ---- */

struct download {
    struct transfer *t;
    size_t i;
    struct blob_writer *w;
    uint64_t have;
};

static int on_bytes(void *arg, const void *p, size_t n, struct err *err)
{
    struct download *d = arg;
    int r = disk_go_on(d->t->core, err);
    if (r >= 0)
        r = blob_write(d->w, p, n, err);
    if (r < 0)
        return r;
    d->have += n;
    transfer_set_bytes(d->t, d->i, d->have);
    return 0;
}

static int on_restart(void *arg, struct err *err)
{
    struct download *d = arg;
    d->have = 0;
    return blob_rewind(d->w, err);
}

/* *ret_resumed: part of it was here before. */
static int download(struct transfer *t, size_t i, bool *ret_resumed, struct err *err)
{
    static const struct registry_sink sink = { on_bytes, on_restart };
    const struct descriptor *blob = &t->layers[i].blob;
    struct download d = { .t = t, .i = i };
    char digest[DIGEST_SIZE];
    uint64_t size;
    int r = blob_resume(t->core, ((struct pull *)t->arg)->room, blob->digest, &d.w, &d.have, err);
    if (r < 0)
        return r;
    if (d.have > blob->size) /* not from this manifest's layer */
        r = on_restart(&d, err);
    *ret_resumed = d.have > 0;
    transfer_set_bytes(t, i, d.have);
    transfer_set_state(t, i, TRANSFER_DOWNLOADING);
    if (r >= 0)
        r = registry_blob_fetch(t->registry, blob, d.have, &sink, &d, err);
    if (r < 0) {
        if (r == -ENOSPC) /* others need the room more than a later pull does */
            (void)blob_rewind(d.w, NULL);
        blob_abort(d.w);
        return r;
    }
    return blob_finish(d.w, blob->digest, digest, &size, err);
}

/* The layer is here, but whether this owner may have it only its bytes tell: see proof.h. */
struct comparison {
    struct transfer *t;
    size_t i;
    struct digest *hash;
    uint64_t have;
};

static int on_compared(void *arg, const void *p, size_t n, struct err *err)
{
    struct comparison *c = arg;
    if (digest_add(c->hash, p, n) < 0)
        return err_set(err, EIO, "cannot hash a layer");
    c->have += n;
    transfer_set_bytes(c->t, c->i, c->have);
    return 0;
}

static int on_compared_again(void *arg, struct err *err)
{
    struct comparison *c = arg;
    digest_free(c->hash);
    c->hash = digest_begin();
    c->have = 0;
    return c->hash ? 0 : err_set(err, ENOMEM, "cannot begin a hash");
}

static int compare_layer(struct transfer *t, size_t i, struct err *err)
{
    static const struct registry_sink sink = { on_compared, on_compared_again };
    const struct descriptor *blob = &t->layers[i].blob;
    struct comparison c = { .t = t, .i = i, .hash = digest_begin() };
    char digest[DIGEST_SIZE] = "";
    if (!c.hash)
        return err_set(err, ENOMEM, "cannot begin a hash");
    transfer_set_state(t, i, TRANSFER_DOWNLOADING);
    int r = registry_blob_fetch(t->registry, blob, 0, &sink, &c, err);
    if (r < 0) {
        digest_free(c.hash);
        return r;
    }
    if (digest_end(c.hash, digest) < 0 || strcmp(digest, blob->digest) != 0)
        return err_fail_as(err, EBADMSG, FAIL_INVALID_IMAGE,
                           "what the registry sent as layer %s is another one", blob->digest);
    return 0;
}

static int take_present(struct transfer *t, size_t i, uint64_t size, struct err *err)
{
    const struct pull *p = t->arg;
    const struct descriptor *blob = &t->layers[i].blob;
    if (size != blob->size)
        return err_fail_as(err, EBADMSG, FAIL_INVALID_IMAGE,
                           "layer %.19s has %llu bytes where its manifest says %llu", blob->digest,
                           (unsigned long long)size, (unsigned long long)blob->size);
    if (!proof_set_has(p->seen, blob->digest) &&
        !proof_known(t->core, t->config.owner, blob->digest)) {
        int r = compare_layer(t, i, err);
        if (r < 0)
            return r;
        proof_add(t->core, t->config.owner, blob->digest);
    }
    transfer_set_ready(t, i, TRANSFER_WAITING);
    return 0;
}

static int fetch_layer(struct transfer *t, size_t i, struct err *err)
{
    const struct descriptor *blob = &t->layers[i].blob;
    bool resumed = false, again = false;
    for (;;) {
        uint64_t size = 0;
        if (blob_exists(t->core, blob->digest, &size))
            return take_present(t, i, size, err);
        int r = download(t, i, &resumed, err);
        if (r >= 0)
            proof_add(t->core, t->config.owner, blob->digest);
        if (r == -EBUSY) { /* another pull has it: its end is ours */
            if (transfer_cancelled(t))
                return err_fail(err, FAIL_CANCELLED, "cancelled");
            (void)poll(NULL, 0, BUSY_MS);
        } else if (r == -EBADMSG && resumed && !again) {
            again = true; /* what was left from before was bad; it is gone now */
        } else if (r < 0) {
            return r;
        }
    }
}

/* ---- all of it ---- */

/* In another packing it is not the same layer: a push must find the one that the manifest names. */
static void find_layers(struct pull *p)
{
    for (size_t i = 0; i < p->manifest.nlayers; i++) {
        struct image_layer l;
        if (!proof_set_has(p->seen, p->chains[i]) ||
            image_find_layer(p->t->core, p->chains[i], &l) < 0 ||
            strcmp(l.digest, p->manifest.layers[i].digest) != 0 || l.compressed_bytes == 0)
            continue;
        p->layers[i] = l;
        transfer_set_ready(p->t, i, TRANSFER_EXISTS);
    }
}

/* Better said before than after an hour of download. */
static int check_room(struct pull *p, struct err *err)
{
    struct statvfs fs;
    uint64_t need = 0;
    for (size_t i = 0; i < p->manifest.nlayers; i++)
        if (!p->layers[i].chain[0] && !blob_exists(p->t->core, p->manifest.layers[i].digest, NULL))
            need += p->manifest.layers[i].size;
    if (fstatvfs(p->t->core->blobs.dir, &fs) < 0)
        return 0; /* then a write will tell */
    uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (need <= room)
        return 0;
    return err_fail(err, FAIL_NO_SPACE,
                    "the image's layers have %llu MiB, and the disk of the data directory has "
                    "%llu MiB left",
                    (unsigned long long)(need >> 20), (unsigned long long)(room >> 20));
}

static int unpack_layers(struct pull *p, struct err *err)
{
    for (size_t i = 0; i < p->manifest.nlayers; i++) {
        const struct descriptor *blob = &p->manifest.layers[i];
        if (p->layers[i].chain[0])
            continue; /* it was there */
        int r = transfer_wait_layer(p->t, i, err);
        if (r < 0)
            return r;
        transfer_set_state(p->t, i, TRANSFER_UNPACKING);
        r = image_add_layer(p->t->core, p->room, i ? p->chains[i - 1] : "", blob->digest,
                            blob->media_type, p->diff_ids[i], &p->layers[i], err);
        if (r < 0)
            return err_wrap(err, r, "layer %.19s", blob->digest);
        transfer_set_state(p->t, i, TRANSFER_DONE);
    }
    return 0;
}

static int pull(struct pull *p, struct err *err)
{
    struct transfer *t = p->t;
    int r = platform_parse(t->config.platform, &p->platform, err);
    if (r >= 0)
        r = transfer_connect(t, false, err);
    if (r >= 0)
        r = get_manifest(p, err);
    if (r >= 0)
        r = get_config(p, err);
    if (r >= 0)
        r = proof_set_new(t->core, t->config.owner, &p->seen, err);
    if (r >= 0)
        r = transfer_set_layers(t, p->manifest.layers, p->manifest.nlayers, err);
    if (r < 0)
        return r;
    t->arg = p;
    find_layers(p);
    r = check_room(p, err);
    if (r >= 0)
        r = transfer_move_layers(t, err);
    if (r >= 0)
        r = unpack_layers(p, err);
    if (r < 0)
        return r;
    return image_create(t->core, t->config.owner, t->config.name, false, p->config_text.data,
                        p->manifest_text.data, p->layers, p->manifest.nlayers, &t->image, err);
}

static int pull_run(struct transfer *t, struct err *err)
{
    struct pull p = { .t = t,
                      .manifest_text = BUF_INIT(MANIFEST_MAX),
                      .config_text = BUF_INIT(MANIFEST_CONFIG_MAX) };
    struct image_hold hold;
    char where[REFERENCE_TEXT_MAX];
    image_hold_begin(t->core, t->config.owner, &hold);
    p.room = &hold.room;
    int r = pull(&p, err);
    if (r < 0)
        atomic_store(&t->cancel, true);
    transfer_join(t); /* a thread may still write a blob that the hold protects */
    image_hold_end(t->core, &hold);
    if (r >= 0)
        log_info("pulled image=\"%s\" from=%s digest=%s layers=%zu", t->image.name,
                 reference_text(&t->ref, where), t->digest, p.manifest.nlayers);
    pull_done(&p);
    return r;
}

/* The name that a pulled image has here: as it was written, without a digest. */
static int local_name(const struct transfer *t, char ret_name[IMAGE_NAME_MAX], struct err *err)
{
    const char *as = t->config.image, *at = strchr(as, '@');
    char name[IMAGE_NAME_MAX];
    int n;
    if (t->config.name)
        return image_name_normal(t->config.name, ret_name, err);
    if (at && !t->ref.tag[0]) /* a digest alone: twelve digits of it tell it from the others */
        n = snprintf(name, sizeof(name), "%.*s:sha256-%.12s", (int)(at - as), as, at + 8);
    else
        n = snprintf(name, sizeof(name), "%.*s", (int)(at ? at - as : (long)strlen(as)), as);
    if (n < 0 || (size_t)n >= sizeof(name))
        return err_fail(err, FAIL_INVALID_REFERENCE,
                        "the image's name is too long to be one here; give it another with 'name'");
    return image_name_normal(name, ret_name, err);
}

int pull_start(struct core *core, const struct transfer_config *config, struct transfer **ret_t,
               struct err *err)
{
    _cleanup_(transfer_freep) struct transfer *t = NULL;
    struct platform platform;
    char name[IMAGE_NAME_MAX];
    int r = platform_parse(config->platform, &platform, err);
    if (r >= 0)
        r = disk_admit(core, err);
    if (r >= 0)
        r = transfer_new(core, config, &t, err);
    if (r >= 0)
        r = local_name(t, name, err);
    if (r >= 0)
        r = transfer_set_name(t, name, err);
    if (r < 0)
        return r;
    t->run = pull_run;
    t->move = fetch_layer;
    r = transfer_start(t, err);
    if (r >= 0)
        *ret_t = take_ptr(t);
    return r;
}
