/* Exports: a tar that is made while it is sent. Its members are few and their names are ours, so its
 * heads are written here; the bytes are those that came in. The same image gives the same tar. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "core/images.h"

#define TAR_BLOCK 512
#define PART (256 * 1024)
#define FIXED_MEMBERS 6
#define SIZE_OCTAL_MAX 077777777777ull /* eleven digits */

struct ex_member {
    char name[128];
    char *text; /* NULL: the blob */
    char digest[DIGEST_SIZE];
    uint64_t size;
    int fd; /* neither: the bytes; -1: none */
};

struct image_export {
    struct core *core;
    struct image_hold hold;
    struct ex_member *members;
    size_t n, at;
    uint64_t sent; /* of the member at hand */
    int fd;
    bool begun, ended;
};

void image_export_free(struct image_export *exp)
{
    if (!exp)
        return;
    for (size_t i = 0; i < exp->n; i++) {
        free(exp->members[i].text);
        fd_close_all(&exp->members[i].fd, 1);
    }
    free(exp->members);
    if (exp->fd >= 0)
        (void)close(exp->fd);
    image_hold_end(exp->core, &exp->hold);
    free(exp);
}

/* ---- the list of members ---- */

static bool has(const struct image_export *exp, const char *name)
{
    for (size_t i = 0; i < exp->n; i++)
        if (strcmp(exp->members[i].name, name) == 0)
            return true;
    return false;
}

/* Takes text, which may be NULL for want of memory. */
static int add_text(struct image_export *exp, const char *name, char *text)
{
    if (!text || has(exp, name)) {
        free(text);
        return text ? 0 : -ENOMEM;
    }
    struct ex_member *m = &exp->members[exp->n++];
    (void)snprintf(m->name, sizeof(m->name), "%s", name);
    m->text = text;
    m->size = strlen(text);
    m->fd = -1;
    return 0;
}

static void add_blob(struct image_export *exp, const char *name, const struct image_layer *l,
                     uint64_t size)
{
    if (has(exp, name))
        return;
    struct ex_member *m = &exp->members[exp->n++];
    (void)snprintf(m->name, sizeof(m->name), "%s", name);
    memcpy(m->digest, l->digest, sizeof(m->digest));
    m->size = size;
    m->fd = -1;
}

static void blob_name(enum image_format format, const char *digest, bool layer, char out[128])
{
    const char *hex = digest + DIGEST_HEX;
    if (format == IMAGE_OCI)
        (void)snprintf(out, 128, "blobs/sha256/%.64s", hex);
    else
        (void)snprintf(out, 128, layer ? "%.64s/layer.tar" : "%.64s.json", hex);
}

/* "name:tag", always with a tag: docker takes no other. */
static json_t *full_name(const struct image *image)
{
    const char *slash = strrchr(image->name, '/');
    return json_sprintf("%s%s", image->name,
                        strchr(slash ? slash : image->name, ':') ? "" : ":latest");
}

static int add_layers(struct image_export *exp, const struct image *image, enum image_format format,
                      const struct image_layer *layers, size_t n, json_t *names, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        char name[128];
        uint64_t size = 0;
        if (!blob_exists(exp->core, layers[i].digest, &size))
            return err_fail_as(err, ENOENT, FAIL_INVALID_IMAGE,
                               "the bytes of layer %zu of '%.120s' are not here (it came in before "
                               "they were kept): import it again, then export it",
                               i + 1, image->name);
        blob_name(format, layers[i].digest, true, name);
        add_blob(exp, name, &layers[i], size);
        if (json_array_append_new(names, json_string(name)) < 0)
            return err_set(err, ENOMEM, "cannot list the layers");
    }
    return 0;
}

static char *dump(json_t *o)
{
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return text;
}

static char *index_text(const struct image *image, size_t manifest_size)
{
    json_t *full = full_name(image);
    const char *name = json_string_value(full), *colon = name ? strrchr(name, ':') : NULL;
    json_t *o = json_pack("{s:i, s:s, s:[{s:s, s:s, s:I, s:{s:s, s:s}}]}", "schemaVersion", 2,
                          "mediaType", OCI_INDEX, "manifests", "mediaType", OCI_MANIFEST, "digest",
                          image->digest, "size", (json_int_t)manifest_size, "annotations",
                          "io.containerd.image.name", name ? name : "",
                          "org.opencontainers.image.ref.name", colon ? colon + 1 : "latest");
    json_decref(full);
    return dump(o);
}

static int add_texts(struct image_export *exp, const struct image *image, enum image_format format,
                     json_t *names, struct err *err)
{
    char *manifest = NULL, *config = NULL, name[128];
    int r = image_texts(exp->core, image, &manifest, &config, err);
    if (r < 0)
        return r;
    blob_name(format, image->id, false, name);
    char *list = dump(json_pack("[{s:s, s:[o], s:O}]", "Config", name, "RepoTags", full_name(image),
                                "Layers", names));
    r = add_text(exp, name, config);
    if (r == 0 && format == IMAGE_OCI) {
        size_t size = strlen(manifest);
        blob_name(format, image->digest, false, name);
        r = add_text(exp, name, take_ptr(manifest));
        if (r == 0)
            r = add_text(exp, "index.json", index_text(image, size));
        if (r == 0)
            r = add_text(exp, "oci-layout", strdup("{\"imageLayoutVersion\":\"1.0.0\"}"));
    }
    free(manifest);
    if (r < 0)
        free(list);
    else
        r = add_text(exp, "manifest.json", list);
    return r < 0 ? err_set(err, -r, "cannot describe an image") : 0;
}

int image_export_begin(struct core *core, const struct image *image, enum image_format format,
                       struct image_export **ret_exp, struct err *err)
{
    _cleanup_free_ struct image_layer *layers = NULL;
    size_t n = 0;
    struct image_export *exp = calloc(1, sizeof(*exp));
    if (!exp)
        return err_set(err, ENOMEM, "cannot allocate an export");
    exp->core = core;
    exp->fd = -1;
    image_hold_begin(core, image->owner, &exp->hold);
    json_t *names = json_array();
    int r = image_layers(core, image, &layers, &n, err);
    if (r >= 0 && !(exp->members = calloc(n + FIXED_MEMBERS, sizeof(*exp->members))))
        r = err_set(err, ENOMEM, "cannot allocate an export");
    if (r >= 0)
        r = add_layers(exp, image, format, layers, n, names, err);
    if (r >= 0)
        r = add_texts(exp, image, format, names, err);
    json_decref(names);
    if (r < 0)
        image_export_free(exp);
    else
        *ret_exp = exp;
    return r;
}

static int fill_parts(struct image_export *exp, const char *name, char *text,
                      const struct image_layer *layers, size_t n, struct image_part *last,
                      struct err *err)
{
    static const struct image image = { .name = "the checkpoint's image" };
    json_t *names = json_array();
    int r = add_text(exp, name, take_ptr(text));
    if (r < 0)
        (void)err_set(err, -r, "cannot describe an export");
    else
        r = add_layers(exp, &image, IMAGE_OCI, layers, n, names, err);
    json_decref(names);
    if (r < 0)
        return r;
    struct ex_member *m = &exp->members[exp->n++];
    blob_name(IMAGE_OCI, last->digest, true, m->name);
    m->size = last->size;
    m->fd = take_fd(last->fd);
    return 0;
}

int image_export_parts(struct core *core, const char *owner, const char *name, char *text,
                       const struct image_layer *layers, size_t n, struct image_part *last,
                       struct image_export **ret_exp, struct err *err)
{
    struct image_export *exp = calloc(1, sizeof(*exp));
    if (exp)
        exp->members = calloc(n + FIXED_MEMBERS, sizeof(*exp->members));
    if (!exp || !exp->members) {
        free(exp);
        free(text);
        fd_close_all(&last->fd, 1);
        return err_set(err, ENOMEM, "cannot allocate an export");
    }
    exp->core = core;
    exp->fd = -1;
    image_hold_begin(core, owner, &exp->hold);
    int r = fill_parts(exp, name, text, layers, n, last, err);
    if (r >= 0) /* the last part is in no store and counts until it is sent */
        r = room_take(&exp->hold.room, last->size, err);
    fd_close_all(&last->fd, 1);
    last->fd = -1;
    if (r < 0)
        image_export_free(exp);
    else
        *ret_exp = exp;
    return r;
}

/* ---- the tar ---- */

static void put_octal(char *at, size_t n, uint64_t v)
{
    for (size_t i = n - 1; i-- > 0; v >>= 3) /* the last byte stays a NUL */
        at[i] = (char)('0' + (v & 7));
}

static int put_head(const struct ex_member *m, struct buf *out)
{
    char h[TAR_BLOCK] = { 0 };
    unsigned sum = 0;
    (void)snprintf(h, 100, "%.99s", m->name); /* ours are shorter */
    put_octal(h + 100, 8, 0644);
    put_octal(h + 108, 8, 0);
    put_octal(h + 116, 8, 0);
    if (m->size <= SIZE_OCTAL_MAX) {
        put_octal(h + 124, 12, m->size);
    } else { /* GNU's form for large ones, which every reader knows */
        h[124] = (char)0x80;
        for (int i = 0; i < 8; i++)
            h[135 - i] = (char)(m->size >> (8 * i));
    }
    put_octal(h + 136, 12, 0);
    h[156] = '0';
    static const char magic[8] = { 'u', 's', 't', 'a', 'r', '\0', '0', '0' };
    memcpy(h + 257, magic, sizeof(magic));
    memset(h + 148, ' ', 8);
    for (size_t i = 0; i < sizeof(h); i++)
        sum += (unsigned char)h[i];
    put_octal(h + 148, 7, sum);
    return buf_append(out, h, sizeof(h));
}

static int put_zeros(struct buf *out, size_t n)
{
    static const char zeros[2 * TAR_BLOCK];
    return buf_append(out, zeros, n);
}

static int begin_member(struct image_export *exp, const struct ex_member *m, struct buf *out,
                        struct err *err)
{
    uint64_t size = m->size;
    int r = 0;
    if (m->fd >= 0) {
        exp->fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 0);
        if (exp->fd < 0 || lseek(exp->fd, 0, SEEK_SET) < 0)
            r = err_set(err, errno, "cannot read '%s'", m->name);
    } else if (!m->text) {
        r = blob_open(exp->core, m->digest, &exp->fd, &size, err);
    }
    if (r >= 0 && size != m->size)
        r = err_set(err, EIO, "a blob has changed");
    exp->begun = true;
    exp->sent = 0;
    return r < 0 ? r : put_head(m, out);
}

static int end_member(struct image_export *exp, const struct ex_member *m, struct buf *out)
{
    if (exp->fd >= 0)
        (void)close(take_fd(exp->fd));
    exp->begun = false;
    exp->at++;
    size_t over = (size_t)(m->size % TAR_BLOCK);
    return over ? put_zeros(out, TAR_BLOCK - over) : 0;
}

static int put_part(struct image_export *exp, const struct ex_member *m, struct buf *out,
                    struct err *err)
{
    uint64_t left = m->size - exp->sent;
    size_t n = left < PART ? (size_t)left : PART;
    int r = buf_reserve(out, n + 1);
    if (r == 0 && m->text)
        memcpy(out->data + out->len, m->text + exp->sent, n);
    else if (r == 0)
        r = fd_read_full(exp->fd, out->data + out->len, n);
    if (r < 0)
        return err_set(err, -r, "cannot read '%s'", m->name);
    out->len += n;
    exp->sent += n;
    return 0;
}

int image_export_next(struct image_export *exp, struct buf *out, struct err *err)
{
    if (exp->at == exp->n) {
        if (exp->ended)
            return 0;
        exp->ended = true;
        int r = put_zeros(out, 2 * (size_t)TAR_BLOCK);
        return r < 0 ? r : 1;
    }
    const struct ex_member *m = &exp->members[exp->at];
    int r = exp->begun ? 0 : begin_member(exp, m, out, err);
    if (r >= 0)
        r = put_part(exp, m, out, err);
    if (r >= 0 && exp->sent == m->size)
        r = end_member(exp, m, out);
    return r < 0 ? r : 1;
}
