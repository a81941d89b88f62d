#include "core/archive_manifest.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/hex.h"
#include "base/json.h"
#include "core/network.h"
#include "core/spec.h"

#define PIECES_MAX 1000000u
#define LAYERS_MAX 1024u

void archive_stream_done(struct archive_stream *s)
{
    free(s->pieces);
    *s = (struct archive_stream){ .n = 0 };
}

int archive_stream_add(struct archive_stream *s, const struct archive_piece *p)
{
    if ((s->n & (s->n - 1)) == 0) { /* full: it has a power of two */
        struct archive_piece *more = reallocarray(s->pieces, s->n ? s->n * 2 : 1, sizeof(*more));
        if (!more || s->n >= PIECES_MAX)
            return -ENOMEM;
        s->pieces = more;
    }
    s->pieces[s->n++] = *p;
    return 0;
}

uint64_t archive_stream_stored(const struct archive_stream *s)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += s->pieces[i].packed;
    return sum;
}

void archive_manifest_done(struct archive_manifest *m)
{
    checkpoint_done(&m->c);
    for (size_t i = 0; i < m->n_layers; i++)
        archive_stream_done(&m->layers[i].blob);
    free(m->layers);
    archive_stream_done(&m->files);
    archive_stream_done(&m->memory);
    m->layers = NULL;
    m->n_layers = 0;
}

/* ---- writing ---- */

static void put_stream(struct jout *j, const char *key, const struct archive_stream *s)
{
    char hex[ARCHIVE_HEX];
    hex_encode(s->digest, CHUNK_DIGEST, hex);
    jout_open(j, key, '{');
    jout_str(j, "sha256", hex);
    jout_uint(j, "bytes", s->bytes);
    jout_open(j, "pieces", '[');
    for (size_t i = 0; i < s->n; i++) {
        hex_encode(s->pieces[i].digest, CHUNK_DIGEST, hex);
        jout_open(j, NULL, '[');
        jout_str(j, NULL, hex);
        jout_uint(j, NULL, s->pieces[i].raw);
        jout_uint(j, NULL, s->pieces[i].packed);
        jout_close(j, ']');
    }
    jout_close(j, ']');
    jout_close(j, '}');
}

/* Without what may be secret. */
static char *public_spec(const char *text)
{
    json_t *o = json_loads(text, 0, NULL);
    (void)json_object_del(o, "env");
    (void)json_object_del(o, "bindings");
    /* What follows the rules is an upstream proxy, and may have a password. */
    const char *network = json_string_value(json_object_get(o, "network"));
    size_t rules = 0;
    if (network && network_proxy(network, &rules))
        (void)json_object_set_new(o, "network", json_stringn(network, rules));
    char *out = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return out;
}

static void put_checkpoint(struct jout *j, const struct checkpoint *c, const char *spec)
{
    jout_str(j, "id", c->id);
    jout_str(j, "owner", c->owner);
    jout_str(j, "sandbox", c->sandbox);
    jout_str(j, "parent", c->parent);
    jout_str(j, "name", c->name);
    jout_str(j, "comment", c->comment);
    jout_str(j, "reason", c->reason);
    jout_open(j, "metadata", '{');
    for (size_t i = 0; i < c->metadata.n; i++)
        jout_member(j, c->metadata.names[i], c->metadata.values[i]);
    jout_close(j, '}');
    jout_int(j, "created_ms", c->created_ms);
    jout_uint(j, "disk_bytes", c->bytes);
    jout_uint(j, "memory_bytes", c->memory_bytes);
    jout_raw(j, "spec", spec);
}

int archive_manifest_write(const struct archive_manifest *m, struct buf *out, struct err *err)
{
    struct jout j = JOUT_INIT(out);
    _cleanup_free_ char *spec = public_spec(m->c.spec);
    if (!spec)
        return err_set(err, ENOMEM, "cannot write down what a sandbox is");
    jout_open(&j, NULL, '{');
    jout_uint(&j, "format", ARCHIVE_FORMAT);
    put_checkpoint(&j, &m->c, spec);
    jout_open(&j, "layers", '[');
    for (size_t i = 0; i < m->n_layers; i++) {
        jout_open(&j, NULL, '{');
        jout_str(&j, "digest", m->layers[i].digest);
        jout_str(&j, "diff_id", m->layers[i].diff_id);
        jout_str(&j, "media_type", m->layers[i].media_type);
        put_stream(&j, "blob", &m->layers[i].blob);
        jout_close(&j, '}');
    }
    jout_close(&j, ']');
    put_stream(&j, "files", &m->files);
    if (m->has_memory)
        put_stream(&j, "memory", &m->memory);
    jout_close(&j, '}');
    int r = jout_done(&j);
    return r < 0 ? err_set(err, -r, "the archive's manifest is too large") : 0;
}

int archive_stream_write(const struct archive_stream *s, struct buf *out, struct err *err)
{
    struct jout j = JOUT_INIT(out);
    put_stream(&j, NULL, s);
    int r = jout_done(&j);
    return r < 0 ? err_set(err, -r, "a list of pieces is too large") : 0;
}

/* ---- reading ---- */

static int refuse(struct err *err, const char *what)
{
    return err_fail(err, FAIL_ARCHIVE_CORRUPT,
                    "the archive's manifest cannot be read: its '%s' is not what it should be",
                    what);
}

static bool read_hex(const json_t *v, uint8_t out[CHUNK_DIGEST])
{
    const char *text = json_string_value(v);
    return text && hex_decode(text, out, CHUNK_DIGEST) == 0;
}

static bool read_number(const json_t *v, json_int_t max, uint64_t *ret)
{
    json_int_t n = json_integer_value(v);
    if (!json_is_integer(v) || n < 0 || n > max)
        return false;
    *ret = (uint64_t)n;
    return true;
}

static bool read_piece(const json_t *v, struct archive_piece *p)
{
    uint64_t raw = 0, packed = 0;
    if (json_array_size(v) != 3 || !read_hex(json_array_get(v, 0), p->digest) ||
        !read_number(json_array_get(v, 1), CHUNK_MAX, &raw) || raw == 0 ||
        !read_number(json_array_get(v, 2), CHUNK_PACKED_MAX, &packed) || packed == 0)
        return false;
    p->raw = (uint32_t)raw;
    p->packed = (uint32_t)packed;
    return true;
}

static int read_stream(const json_t *o, struct archive_stream *s, struct err *err)
{
    const json_t *pieces = json_object_get(o, "pieces");
    uint64_t sum = 0;
    if (!read_hex(json_object_get(o, "sha256"), s->digest) ||
        !read_number(json_object_get(o, "bytes"), INT64_MAX, &s->bytes) || !json_is_array(pieces) ||
        json_array_size(pieces) > PIECES_MAX)
        return refuse(err, "pieces");
    for (size_t i = 0; i < json_array_size(pieces); i++) {
        struct archive_piece p;
        if (!read_piece(json_array_get(pieces, i), &p))
            return refuse(err, "pieces");
        if (archive_stream_add(s, &p) < 0)
            return err_set(err, ENOMEM, "cannot allocate a list of pieces");
        sum += p.raw;
    }
    return sum == s->bytes ? 0 : refuse(err, "bytes");
}

static bool read_text(const json_t *o, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(o, key));
    if (!text || strlen(text) >= size)
        return false;
    (void)snprintf(out, size, "%s", text);
    return true;
}

static int read_layers(const json_t *list, struct archive_manifest *m, struct err *err)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > LAYERS_MAX)
        return refuse(err, "layers");
    m->layers = calloc(n + 1, sizeof(*m->layers));
    if (!m->layers)
        return err_set(err, ENOMEM, "cannot allocate layers");
    for (; m->n_layers < n; m->n_layers++) {
        const json_t *o = json_array_get(list, m->n_layers);
        struct archive_layer *l = &m->layers[m->n_layers];
        if (!read_text(o, "digest", l->digest, sizeof(l->digest)) || !digest_valid(l->digest) ||
            !read_text(o, "diff_id", l->diff_id, sizeof(l->diff_id)) || !digest_valid(l->diff_id) ||
            !read_text(o, "media_type", l->media_type, sizeof(l->media_type)))
            return refuse(err, "layers");
        int r = read_stream(json_object_get(o, "blob"), &l->blob, err);
        if (r < 0) {
            archive_stream_done(&l->blob);
            return r;
        }
    }
    return 0;
}

static int read_metadata(const json_t *o, struct checkpoint *c, struct err *err)
{
    const char *name;
    json_t *value;
    int r = 0;
    if (!json_is_object(o) || json_object_size(o) > 64)
        return refuse(err, "metadata");
    json_object_foreach((json_t *)(uintptr_t)o, name, value) {
        const char *text = json_string_value(value);
        if (!text || strlen(name) > 256 || strlen(text) > 4096)
            return refuse(err, "metadata");
        if (r == 0)
            r = pairs_add(&c->metadata, name, text);
    }
    return r < 0 ? err_set(err, -r, "cannot allocate metadata") : 0;
}

/* What a sandbox is must be readable here, not only there. */
static int read_spec(const json_t *o, struct checkpoint *c, struct err *err)
{
    struct sandbox_spec spec = { 0 };
    c->spec = json_is_object(o) ? json_dumps(o, JSON_COMPACT) : NULL;
    if (!c->spec)
        return refuse(err, "spec");
    int r = spec_from_json(c->spec, &spec, NULL);
    if (r >= 0)
        r = spec_check(&spec, NULL);
    sandbox_spec_done(&spec);
    return r < 0 ? refuse(err, "spec") : 0;
}

static int read_checkpoint(const json_t *o, struct checkpoint *c, struct err *err)
{
    char comment[CHECKPOINT_COMMENT_MAX + 1];
    uint64_t created = 0;
    if (!read_text(o, "id", c->id, sizeof(c->id)) || !id_valid(c->id) ||
        !read_text(o, "owner", c->owner, sizeof(c->owner)) || !name_valid(c->owner) ||
        !read_text(o, "sandbox", c->sandbox, sizeof(c->sandbox)) || !id_valid(c->sandbox) ||
        !read_text(o, "parent", c->parent, sizeof(c->parent)) ||
        (c->parent[0] && !id_valid(c->parent)) || !read_text(o, "name", c->name, sizeof(c->name)) ||
        (c->name[0] && !name_valid(c->name)) ||
        !read_text(o, "reason", c->reason, sizeof(c->reason)) ||
        (c->reason[0] && !name_valid(c->reason)) ||
        !read_text(o, "comment", comment, sizeof(comment)) ||
        !read_number(json_object_get(o, "created_ms"), INT64_MAX, &created) ||
        !read_number(json_object_get(o, "disk_bytes"), INT64_MAX, &c->bytes) ||
        !read_number(json_object_get(o, "memory_bytes"), INT64_MAX, &c->memory_bytes))
        return refuse(err, "id, owner, sandbox, parent, name or comment");
    c->created_ms = (int64_t)created;
    c->comment = strdup(comment);
    if (!c->comment)
        return err_set(err, ENOMEM, "cannot allocate a comment");
    int r = read_metadata(json_object_get(o, "metadata"), c, err);
    return r < 0 ? r : read_spec(json_object_get(o, "spec"), c, err);
}

static int read_all(const json_t *o, struct archive_manifest *m, struct err *err)
{
    uint64_t format = 0;
    if (!read_number(json_object_get(o, "format"), 1000, &format) || format != ARCHIVE_FORMAT)
        return refuse(err, "format");
    int r = read_checkpoint(o, &m->c, err);
    if (r >= 0)
        r = read_layers(json_object_get(o, "layers"), m, err);
    if (r >= 0)
        r = read_stream(json_object_get(o, "files"), &m->files, err);
    m->has_memory = m->c.memory = json_object_get(o, "memory") != NULL;
    if (r >= 0 && m->has_memory)
        r = read_stream(json_object_get(o, "memory"), &m->memory, err);
    return r;
}

int archive_manifest_read(const char *p, size_t n, struct archive_manifest *ret_m, struct err *err)
{
    struct archive_manifest m = { .n_layers = 0 };
    json_t *o = json_shallow(p, n) ? json_loadb(p, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
    int r = json_is_object(o) ? read_all(o, &m, err) : refuse(err, "text");
    json_decref(o);
    if (r < 0)
        archive_manifest_done(&m);
    else
        *ret_m = m;
    return r;
}

int archive_stream_read(const char *p, size_t n, struct archive_stream *ret_s, struct err *err)
{
    struct archive_stream s = { .n = 0 };
    json_t *o = json_shallow(p, n) ? json_loadb(p, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
    int r = json_is_object(o) ? read_stream(o, &s, err) : refuse(err, "text");
    json_decref(o);
    if (r < 0)
        archive_stream_done(&s);
    else
        *ret_s = s;
    return r;
}
