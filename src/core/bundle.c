#include "core/bundle.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "core/images.h"
#include "core/keeper.h"
#include "wire/unpack.h"

#define MEMBERS_MAX 10000 /* the splitter has the same limit; it is not trusted */
#define BLOCK (256 * 1024)
#define LINKS_DEEP 8
#define NESTED_MAX 4 /* an index in an index in … */

struct member {
    char *name;
    char *target; /* a link's; then digest is empty */
    char digest[DIGEST_SIZE];
    uint64_t size;
};

struct bundle {
    struct core *core;
    struct room *room;
    struct member *members;
    size_t n;
    bool rootfs, ended;
};

static int invalid(struct err *err, const char *what, const char *name)
{
    return err_fail(err, FAIL_INVALID_IMAGE, "'%.120s' %s", name, what);
}

void bundle_free(struct bundle *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->n; i++) {
        if (a->members[i].digest[0])
            blob_release_unused(a->core, a->room->owner, a->members[i].digest);
        free(a->members[i].name);
        free(a->members[i].target);
    }
    free(a->members);
    free(a);
}

/* ---- taking it apart ---- */

static struct member *add_member(struct bundle *a, const char *name)
{
    if (a->n == MEMBERS_MAX)
        return NULL;
    struct member *members = reallocarray(a->members, a->n + 1, sizeof(*members));
    if (!members)
        return NULL;
    a->members = members;
    struct member *m = &members[a->n];
    *m = (struct member){ .name = strdup(name) };
    if (!m->name)
        return NULL;
    a->n++;
    return m;
}

/* "blobs/sha256/<hex>" says what its bytes are. */
static const char *claimed(const char *name, char digest[DIGEST_SIZE])
{
    static const char dir[] = "blobs/sha256/";
    if (strncmp(name, dir, sizeof(dir) - 1) != 0)
        return NULL;
    int n = snprintf(digest, DIGEST_SIZE, "sha256:%s", name + sizeof(dir) - 1);
    return n > 0 && n < DIGEST_SIZE && digest_valid(digest) ? digest : NULL;
}

static int take_file(struct bundle *a, int in, const char *name, uint64_t size, struct err *err)
{
    char digest[DIGEST_SIZE];
    const char *expected = claimed(name, digest);
    _cleanup_free_ char *block = malloc(BLOCK);
    struct member *m = block ? add_member(a, name) : NULL;
    struct blob_writer *w = NULL;
    if (!m)
        return err_set(err, ENOMEM, "cannot allocate a member");
    int r = blob_begin(a->core, a->room, &w, err);
    for (uint64_t left = size; r == 0 && left > 0;) {
        size_t n = left < BLOCK ? (size_t)left : BLOCK;
        r = fd_read_full(in, block, n);
        if (r < 0)
            (void)err_set(err, EPIPE, "the archive ends within '%.120s'", name);
        else
            r = blob_write(w, block, n, err);
        left -= n;
    }
    if (r < 0) {
        blob_abort(w);
        return r;
    }
    return blob_finish(w, expected, m->digest, &m->size, err);
}

static int take_link(struct bundle *a, int in, const char *name, uint64_t size, struct err *err)
{
    struct member *m = size <= SPLIT_NAME_MAX ? add_member(a, name) : NULL;
    if (!m || !(m->target = calloc(1, (size_t)size + 1)))
        return err_set(err, ENOMEM, "cannot allocate a member");
    return fd_read_full(in, m->target, (size_t)size);
}

/* 1: go on; 0: that was the last. */
static int take_frame(struct bundle *a, int in, struct err *err)
{
    struct split_head head;
    char name[SPLIT_NAME_MAX + 1];
    if (fd_read_full(in, &head, sizeof(head)) < 0 || head.name_len > SPLIT_NAME_MAX ||
        fd_read_full(in, name, head.name_len) < 0)
        return -EPIPE;
    name[head.name_len] = '\0';
    a->rootfs = head.kind == SPLIT_ROOTFS;
    a->ended = a->rootfs || head.kind == SPLIT_END;
    if (a->ended)
        return 0;
    int r = head.kind == SPLIT_FILE   ? take_file(a, in, name, head.size, err)
            : head.kind == SPLIT_LINK ? take_link(a, in, name, head.size, err)
                                      : -EPROTO;
    return r < 0 ? r : 1;
}

/* Reads members until the splitter is done; then the keeper says whether it was happy. */
static int read_members(struct bundle *a, int blob, struct err *err)
{
    struct keeper_request req;
    _cleanup_fd_ int in = -1, sock = -1;
    memset(&req, 0, sizeof(req));
    req.version = KEEPER_VERSION;
    req.op = KEEPER_SPLIT;
    req.ratio = a->core->layer_ratio;
    int r = keeper_ask_piped(a->core, &req, &blob, 1, &in, &sock, err);
    if (r < 0)
        return r;
    struct err why = ERR_INIT;
    while ((r = take_frame(a, in, &why)) > 0)
        ;
    (void)close(take_fd(in)); /* whatever it still writes */
    if (why.failure) {        /* a digest that is wrong, a full disk: ours to say */
        if (err)
            *err = why;
        return r;
    }
    int said = keeper_ask_finish(sock, 0, "read the archive", NULL, err);
    if (said == -ENOTCONN)
        return said;
    if (a->ended)
        return 0;
    return said < 0 ? said : err_set(err, EPIPE, "the archive could not be taken apart");
}

static const struct member *find(const struct bundle *a, const char *name)
{
    for (size_t i = a->n; i-- > 0;) /* of two, tar means the later one */
        if (strcmp(a->members[i].name, name) == 0)
            return &a->members[i];
    return NULL;
}

int bundle_open_any(struct core *core, struct room *room, const char *digest, struct bundle **ret_a,
                    struct err *err)
{
    _cleanup_fd_ int blob = -1;
    _cleanup_(bundle_freep) struct bundle *a = calloc(1, sizeof(*a));
    if (!a)
        return err_set(err, ENOMEM, "cannot allocate an archive");
    a->core = core;
    a->room = room;
    int r = blob_open(core, digest, &blob, NULL, err);
    if (r >= 0)
        r = read_members(a, blob, err);
    if (r < 0)
        return r;
    if (!a->rootfs && a->n == 0)
        return err_fail(err, FAIL_INVALID_IMAGE, "the archive is empty");
    if (!a->rootfs)
        *ret_a = take_ptr(a);
    return 0;
}

int bundle_open(struct core *core, struct room *room, const char *digest, struct bundle **ret_a,
                struct err *err)
{
    _cleanup_(bundle_freep) struct bundle *a = NULL;
    int r = bundle_open_any(core, room, digest, &a, err);
    if (r >= 0 && a && (find(a, "index.json") || find(a, "manifest.json")))
        *ret_a = take_ptr(a);
    return r;
}

/* ---- understanding it ---- */

/* Follows links, as docker's older archives have them for a layer that comes twice. */
static const struct member *follow(const struct bundle *a, const char *name, struct err *err)
{
    char path[2 * SPLIT_NAME_MAX + 2];
    const struct member *m = find(a, name);
    for (int i = 0; m && m->target && i < LINKS_DEEP; i++) {
        const char *to = m->target;
        const char *slash = strrchr(m->name, '/');
        size_t dir = slash ? (size_t)(slash - m->name) : 0;
        while (strncmp(to, "../", 3) == 0) {
            to += 3;
            while (dir > 0 && m->name[dir - 1] != '/')
                dir--;
            dir -= dir > 0;
        }
        (void)snprintf(path, sizeof(path), "%.*s%s%s", (int)dir, m->name, dir ? "/" : "", to);
        m = find(a, path);
    }
    if (!m || m->target)
        (void)invalid(err, "is named and is not in the archive", name);
    return m && !m->target ? m : NULL;
}

static int read_text(const struct bundle *a, const struct member *m, struct buf *out,
                     struct err *err)
{
    if (m->size > OCI_JSON_MAX)
        return invalid(err, "is over 8 MiB", m->name);
    return blob_read(a->core, m->digest, out, err);
}

static int read_blob(const struct bundle *a, const char *digest, struct buf *out, struct err *err)
{
    char name[DIGEST_SIZE + 16];
    (void)snprintf(name, sizeof(name), "blobs/sha256/%.64s", digest + DIGEST_HEX);
    const struct member *m = follow(a, name, err);
    buf_clear(out);
    return m ? read_text(a, m, out, err) : -EINVAL;
}

bool bundle_has(const struct bundle *a, const char *digest)
{
    char name[DIGEST_SIZE + 16];
    (void)snprintf(name, sizeof(name), "blobs/sha256/%.64s", digest + DIGEST_HEX);
    const struct member *m = find(a, name);
    return m && !m->target;
}

int bundle_text(const struct bundle *a, const char *name, struct buf *out, struct err *err)
{
    const struct member *m = follow(a, name, err);
    return m ? read_text(a, m, out, err) : -EINVAL;
}

struct target {
    const char *owner, *name;
    bool public;
};

static int add_layers(struct bundle *a, const struct oci_blob *blobs, size_t n,
                      const struct image_config *config, struct image_layer *layers,
                      struct err *err)
{
    int r = 0;
    if (n == 0 || config->n_diff_ids != n)
        return err_fail(err, FAIL_INVALID_IMAGE,
                        "the image has %zu layers and its configuration says %zu", n,
                        config->n_diff_ids);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = image_add_layer(a->core, a->room, i ? layers[i - 1].chain : "", blobs[i].digest,
                            blobs[i].media_type, config->diff_ids[i], &layers[i], err);
    return r;
}

static int make_image(struct bundle *a, const char *config_text, const char *manifest,
                      const struct oci_blob *blobs, size_t n, const struct target *t,
                      struct image *ret_image, struct err *err)
{
    struct image_config config;
    int r = image_config_parse(config_text, strlen(config_text), &config, err);
    if (r < 0)
        return r;
    struct image_layer *layers = calloc(n + 1, sizeof(*layers));
    r = layers ? add_layers(a, blobs, n, &config, layers, err)
               : err_set(err, ENOMEM, "cannot allocate layers");
    image_config_done(&config);
    if (r == 0)
        r = image_create(a->core, t->owner, t->name, t->public, config_text, manifest, layers, n,
                         ret_image, err);
    free(layers);
    return r;
}

static int from_manifest(struct bundle *a, const struct buf *manifest, const struct target *t,
                         struct image *ret_image, struct err *err)
{
    _cleanup_(buf_done) struct buf config = BUF_INIT(OCI_JSON_MAX + 1);
    struct oci_manifest m;
    int r = oci_manifest_parse(manifest->data, manifest->len, &m, err);
    if (r < 0)
        return r;
    r = read_blob(a, m.config.digest, &config, err);
    if (r == 0)
        r = make_image(a, config.data, manifest->data, m.layers, m.n, t, ret_image, err);
    oci_manifest_done(&m);
    return r;
}

static int from_oci(struct bundle *a, const struct target *t, struct image *ret_image,
                    struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(OCI_JSON_MAX + 1);
    const struct member *index = follow(a, "index.json", err);
    int r = index ? read_text(a, index, &text, err) : -EINVAL;
    for (int i = 0; r == 0 && i < NESTED_MAX && oci_is_index(text.data, text.len); i++) {
        struct oci_blob next;
        r = oci_index_pick(text.data, text.len, NULL, t->name, &next, err);
        if (r == 0)
            r = read_blob(a, next.digest, &text, err);
    }
    return r < 0 ? r : from_manifest(a, &text, t, ret_image, err);
}

static bool has_tag(const json_t *image, const char *name)
{
    size_t i;
    const json_t *v;
    json_array_foreach(json_object_get(image, "RepoTags"), i, v) {
        char normal[IMAGE_NAME_MAX];
        const char *text = json_string_value(v);
        if (text && image_name_normal(text, normal, NULL) == 0 && strcmp(normal, name) == 0)
            return true;
    }
    return false;
}

static const json_t *choose(const json_t *list, const char *name, struct err *err)
{
    size_t i;
    const json_t *image;
    if (json_array_size(list) == 1)
        return json_array_get(list, 0);
    json_array_foreach((json_t *)(uintptr_t)list, i, image)
        if (has_tag(image, name))
            return image;
    (void)err_fail(err, FAIL_INVALID_IMAGE,
                   "the archive has %zu images and none is called '%.120s': import it under the "
                   "name that one of them has there",
                   json_array_size(list), name);
    return NULL;
}

static int docker_layers(const struct bundle *a, const json_t *names, struct oci_blob *blobs,
                         struct err *err)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        const struct member *m = name ? follow(a, name, err) : NULL;
        if (!m)
            return name ? -EINVAL : invalid(err, "names no layer", "manifest.json");
        blobs[i].size = m->size;
        memcpy(blobs[i].digest, m->digest, sizeof(blobs[i].digest));
        (void)snprintf(blobs[i].media_type, sizeof(blobs[i].media_type), "%s",
                       image_layer_type(a->core, m->digest));
    }
    return 0;
}

static int from_docker_image(struct bundle *a, const json_t *image, const struct target *t,
                             struct image *ret_image, struct err *err)
{
    _cleanup_(buf_done) struct buf config = BUF_INIT(OCI_JSON_MAX + 1);
    const char *name = json_string_value(json_object_get(image, "Config"));
    const json_t *names = json_object_get(image, "Layers");
    size_t n = json_array_size(names);
    if (!name || !json_is_array(names) || n > OCI_LAYERS_MAX)
        return invalid(err, "has no Config or no Layers", "manifest.json");
    const struct member *m = follow(a, name, err);
    int r = m ? read_text(a, m, &config, err) : -EINVAL;
    struct oci_blob *blobs = calloc(n + 1, sizeof(*blobs));
    if (r == 0)
        r = blobs ? docker_layers(a, names, blobs, err)
                  : err_set(err, ENOMEM, "cannot allocate layers");
    if (r == 0)
        r = make_image(a, config.data, NULL, blobs, n, t, ret_image, err);
    free(blobs);
    return r;
}

static int from_docker(struct bundle *a, const struct target *t, struct image *ret_image,
                       struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(OCI_JSON_MAX + 1);
    const struct member *m = follow(a, "manifest.json", err);
    int r = m ? read_text(a, m, &text, err) : -EINVAL;
    if (r < 0)
        return r;
    json_t *list =
        json_shallow(text.data, text.len) ? json_loadb(text.data, text.len, 0, NULL) : NULL;
    if (!json_is_array(list)) {
        json_decref(list);
        return invalid(err, "is no JSON list", "manifest.json");
    }
    const json_t *image = choose(list, t->name, err);
    r = image ? from_docker_image(a, image, t, ret_image, err) : -EINVAL;
    json_decref(list);
    return r;
}

int bundle_image(struct bundle *a, const char *owner, const char *name, bool public,
                 struct image *ret_image, struct err *err)
{
    const struct target t = { owner, name, public };
    /* An archive may be both: the layout keeps the manifest, and with it the digest. */
    if (find(a, "index.json") && find(a, "oci-layout"))
        return from_oci(a, &t, ret_image, err);
    return find(a, "manifest.json") ? from_docker(a, &t, ret_image, err)
                                    : from_oci(a, &t, ret_image, err);
}
