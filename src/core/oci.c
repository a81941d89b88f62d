#include "core/oci.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"

#define ENTRIES_MAX 256 /* platforms in an index */
#define NAMES_MAX 300   /* what a refusal lists */
#define REF_NAME "org.opencontainers.image.ref.name"
#define CONTAINERD_NAME "io.containerd.image.name"

static int invalid(struct err *err, const char *what)
{
    return err_fail(err, FAIL_INVALID_IMAGE, "%s", what);
}

static json_t *load(const char *text, size_t n, struct err *err)
{
    json_error_t why = { .text = "it is nested too deeply" };
    json_t *o = n > OCI_JSON_MAX || !json_shallow(text, n)
                    ? NULL
                    : json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    if (n > OCI_JSON_MAX)
        (void)invalid(err, "a manifest or configuration is over 8 MiB");
    else if (!o)
        (void)err_fail(err, FAIL_INVALID_IMAGE, "a manifest or configuration is no JSON: %.120s",
                       why.text);
    else if (!json_is_object(o))
        (void)invalid(err, "a manifest or configuration is no JSON object");
    if (json_is_object(o))
        return o;
    json_decref(o);
    return NULL;
}

static const char *text_of(const json_t *o, const char *name)
{
    return json_string_value(json_object_get(o, name));
}

/* ---- descriptors ---- */

static int get_blob(const json_t *o, struct oci_blob *ret_b, struct err *err)
{
    const char *digest = text_of(o, "digest"), *type = text_of(o, "mediaType");
    const json_t *size = json_object_get(o, "size");
    if (!digest_valid(digest))
        return err_fail(err, FAIL_INVALID_IMAGE, "'%.80s' is not a sha256 digest",
                        digest ? digest : "");
    if (!json_is_integer(size) || json_integer_value(size) < 0)
        return err_fail(err, FAIL_INVALID_IMAGE, "'%s' has no size", digest);
    if (type && strlen(type) >= sizeof(ret_b->media_type))
        return err_fail(err, FAIL_INVALID_IMAGE, "'%s' has too long a media type", digest);
    *ret_b = (struct oci_blob){ .size = (uint64_t)json_integer_value(size) };
    memcpy(ret_b->digest, digest, DIGEST_SIZE);
    if (type)
        memcpy(ret_b->media_type, type, strlen(type) + 1);
    return 0;
}

static json_t *blob_json(const struct oci_blob *b)
{
    return json_pack("{s:s, s:s, s:I}", "mediaType", b->media_type, "digest", b->digest, "size",
                     (json_int_t)b->size);
}

/* ---- manifests ---- */

void oci_manifest_done(struct oci_manifest *m)
{
    free(m->layers);
    m->layers = NULL;
    m->n = 0;
}

static int get_layers(const json_t *list, struct oci_manifest *m, struct err *err)
{
    size_t n = json_array_size(list);
    if (n > OCI_LAYERS_MAX)
        return err_fail(err, FAIL_INVALID_IMAGE, "%zu layers; at most %d are taken", n,
                        OCI_LAYERS_MAX);
    m->layers = calloc(n + 1, sizeof(*m->layers));
    if (!m->layers)
        return err_set(err, ENOMEM, "cannot allocate a manifest");
    for (; m->n < n; m->n++) {
        int r = get_blob(json_array_get(list, m->n), &m->layers[m->n], err);
        if (r < 0)
            return r;
    }
    return 0;
}

int oci_manifest_parse(const char *text, size_t n, struct oci_manifest *ret_m, struct err *err)
{
    struct oci_manifest m = { .n = 0 };
    json_t *o = load(text, n, err);
    if (!o)
        return -EINVAL;
    const json_t *config = json_object_get(o, "config"), *list = json_object_get(o, "layers");
    int r = 0;
    if (json_integer_value(json_object_get(o, "schemaVersion")) == 1)
        r = invalid(err, "the manifest is of schema 1, which registries gave up; push it anew");
    else if (!json_is_object(config) || !json_is_array(list))
        r = invalid(err, "the manifest has no config or no layers");
    if (r == 0)
        r = get_blob(config, &m.config, err);
    if (r == 0)
        r = get_layers(list, &m, err);
    json_decref(o);
    if (r < 0) {
        oci_manifest_done(&m);
        return r;
    }
    *ret_m = m;
    return 0;
}

char *oci_manifest_text(const struct oci_blob *config, const struct oci_blob *layers, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, blob_json(&layers[i])) < 0) {
            json_decref(list);
            list = NULL;
        }
    json_t *o = json_pack("{s:i, s:s, s:o, s:o}", "schemaVersion", 2, "mediaType", OCI_MANIFEST,
                          "config", blob_json(config), "layers", list);
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return text;
}

/* ---- indexes ---- */

static bool is_index(const json_t *o)
{
    const char *type = text_of(o, "mediaType");
    if (type && (strcmp(type, OCI_INDEX) == 0 || strcmp(type, DOCKER_INDEX) == 0))
        return true;
    return json_is_array(json_object_get(o, "manifests")) && !json_object_get(o, "layers");
}

bool oci_is_index(const char *text, size_t n)
{
    json_t *o = load(text, n, NULL);
    bool yes = o && is_index(o);
    json_decref(o);
    return yes;
}

const char *oci_machine(void)
{
#if defined(__x86_64__)
    return "amd64";
#elif defined(__aarch64__)
    return "arm64";
#elif defined(__arm__)
    return "arm";
#elif defined(__i386__)
    return "386";
#elif defined(__powerpc64__)
    return "ppc64le";
#elif defined(__s390x__)
    return "s390x";
#elif defined(__riscv)
    return "riscv64";
#else
    return "unknown";
#endif
}

struct platform {
    char os[32], arch[32], variant[32];
};

static void split_platform(const char *text, struct platform *p)
{
    char copy[96], *rest = copy, *part;
    char *into[] = { p->os, p->arch, p->variant };
    (void)snprintf(p->os, sizeof(p->os), "linux");
    (void)snprintf(p->arch, sizeof(p->arch), "%s", oci_machine());
    p->variant[0] = '\0';
    if (!text)
        return;
    (void)snprintf(copy, sizeof(copy), "%s", text);
    for (size_t i = 0; i < ARRAY_LEN(into) && (part = strsep(&rest, "/")); i++)
        (void)snprintf(into[i], sizeof(p->os), "%.31s", part);
}

/* How well an entry fits: 0 not at all. One that names no platform fits whoever asks for none. */
static int fits(const json_t *entry, const struct platform *p)
{
    const json_t *have = json_object_get(entry, "platform");
    if (!json_is_object(have))
        return 1;
    const char *os = text_of(have, "os"), *arch = text_of(have, "architecture"),
               *variant = text_of(have, "variant");
    if (!os || !arch || strcmp(os, p->os) != 0 || strcmp(arch, p->arch) != 0)
        return 0;
    if (p->variant[0])
        return variant && strcmp(variant, p->variant) == 0 ? 3 : variant ? 0 : 2;
    return 2;
}

static const char *tag_of(const char *name)
{
    const char *slash = strrchr(name, '/'), *colon = strrchr(name, ':');
    return colon && (!slash || colon > slash) ? colon + 1 : "latest";
}

static bool named(const json_t *entry, const char *ref)
{
    const json_t *notes = json_object_get(entry, "annotations");
    const char *name = text_of(notes, REF_NAME), *full = text_of(notes, CONTAINERD_NAME);
    return (name && (strcmp(name, ref) == 0 || strcmp(name, tag_of(ref)) == 0)) ||
           (full && strcmp(full, ref) == 0);
}

static int none_fits(const json_t *list, const struct platform *p, struct err *err)
{
    char have[NAMES_MAX] = "";
    size_t at = 0, i;
    const json_t *entry;
    json_array_foreach((json_t *)(uintptr_t)list, i, entry) {
        const json_t *pl = json_object_get(entry, "platform");
        const char *os = text_of(pl, "os"), *arch = text_of(pl, "architecture");
        if (!os || !arch || strcmp(os, "unknown") == 0)
            continue;
        int n = snprintf(have + at, sizeof(have) - at, "%s%.24s/%.24s", at ? ", " : "", os, arch);
        if (n < 0 || at + (size_t)n >= sizeof(have))
            break;
        at += (size_t)n;
    }
    return err_fail(err, FAIL_UNSUPPORTED_PLATFORM, "there is none for %s/%s%s%s; it has %s", p->os,
                    p->arch, p->variant[0] ? "/" : "", p->variant,
                    have[0] ? have : "no platform at all");
}

static int pick(const json_t *list, const char *platform, const char *ref,
                struct oci_blob *ret_blob, struct err *err)
{
    const json_t *best = NULL, *entry;
    struct platform p;
    int best_score = 0;
    size_t i;
    split_platform(platform, &p);
    if (json_array_size(list) > ENTRIES_MAX)
        return invalid(err, "the index has over 256 entries");
    json_array_foreach((json_t *)(uintptr_t)list, i, entry) {
        int score = fits(entry, &p);
        if (score > 0 && ref && named(entry, ref))
            score += 10;
        if (score > best_score) {
            best = entry;
            best_score = score;
        }
    }
    return best ? get_blob(best, ret_blob, err) : none_fits(list, &p, err);
}

int oci_index_pick(const char *text, size_t n, const char *platform, const char *ref,
                   struct oci_blob *ret_blob, struct err *err)
{
    json_t *o = load(text, n, err);
    if (!o)
        return -EINVAL;
    const json_t *list = json_object_get(o, "manifests");
    int r = json_is_array(list) ? pick(list, platform, ref, ret_blob, err)
                                : invalid(err, "the index lists no manifests");
    json_decref(o);
    return r;
}
