#include "registry/manifest.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"

#define NAMES_MAX 240 /* of the platforms that a message lists */

static void cleanup_json(json_t **v)
{
    json_decref(*v);
}
#define _cleanup_json_ _cleanup_(cleanup_json)

static int bad(struct err *err, const char *what)
{
    return err_fail_as(err, EBADMSG, FAIL_INVALID_IMAGE, "the registry's manifest %s", what);
}

static int load(const char *p, size_t n, json_t **ret_doc, struct err *err)
{
    json_t *doc = json_shallow(p, n) ? json_loadb(p, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (!json_is_object(doc)) {
        json_decref(doc);
        return bad(err, "is not a JSON object");
    }
    *ret_doc = doc;
    return 0;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* A type is a word that goes into a message and a header: nothing else may be in it. */
static bool media_type_valid(const char *s)
{
    size_t n = strlen(s);
    if (n >= MEDIA_TYPE_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        if (s[i] <= ' ' || s[i] >= 0x7f || s[i] == '"')
            return false;
    return true;
}

static int read_descriptor(const json_t *v, uint64_t max, struct descriptor *ret_d, struct err *err)
{
    const json_t *digest = json_object_get(v, "digest");
    const json_t *size = json_object_get(v, "size");
    const char *type = text_of(v, "mediaType");
    if (!json_is_object(v))
        return bad(err, "has a descriptor that is not an object");
    if (!json_is_string(digest) ||
        !sha_valid(json_string_value(digest), json_string_length(digest)))
        return bad(err, "has a descriptor without a sha256 digest");
    if (!json_is_integer(size) || json_integer_value(size) < 0)
        return bad(err, "has a descriptor without a size");
    if ((uint64_t)json_integer_value(size) > max)
        return err_fail_as(err, EFBIG, FAIL_INVALID_IMAGE,
                           "a part of the image has %lld bytes; at most %llu are taken",
                           (long long)json_integer_value(size), (unsigned long long)max);
    if (!media_type_valid(type))
        return bad(err, "has a media type that is no plain word");
    memset(ret_d, 0, sizeof(*ret_d));
    memcpy(ret_d->digest, json_string_value(digest), SHA_SIZE);
    memcpy(ret_d->media_type, type, strlen(type) + 1);
    ret_d->size = (uint64_t)json_integer_value(size);
    return 0;
}

/* ---- platforms ---- */

static const char *machine(void)
{
#if defined(__x86_64__)
    return "amd64";
#elif defined(__aarch64__)
    return "arm64";
#elif defined(__riscv)
    return "riscv64";
#elif defined(__powerpc64__)
    return "ppc64le";
#elif defined(__s390x__)
    return "s390x";
#elif defined(__arm__)
    return "arm";
#else
    return "386";
#endif
}

static bool take_part(const char **at, char *out, size_t size)
{
    size_t n = strcspn(*at, "/");
    if (n == 0 || n >= size)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_.-", (*at)[i]))
            return false;
    memcpy(out, *at, n);
    out[n] = '\0';
    *at += n;
    if (**at == '/')
        ++*at;
    return true;
}

int platform_parse(const char *text, struct platform *ret_platform, struct err *err)
{
    struct platform p = { .os = "linux" };
    (void)snprintf(p.architecture, sizeof(p.architecture), "%s", machine());
    if (text && *text) {
        const char *at = text;
        bool ok = true;
        if (strchr(text, '/'))
            ok = take_part(&at, p.os, sizeof(p.os));
        ok = ok && take_part(&at, p.architecture, sizeof(p.architecture));
        if (ok && *at)
            ok = take_part(&at, p.variant, sizeof(p.variant)) && !*at;
        if (!ok || text[strlen(text) - 1] == '/')
            return err_fail(err, FAIL_INVALID_FIELD,
                            "'platform' must be OS/ARCHITECTURE[/VARIANT], such as linux/arm64");
        if (strcmp(p.architecture, "x86_64") == 0)
            memcpy(p.architecture, "amd64", 6);
        else if (strcmp(p.architecture, "aarch64") == 0)
            memcpy(p.architecture, "arm64", 6);
    }
    *ret_platform = p;
    return 0;
}

const char *platform_text(const struct platform *p, char out[100])
{
    (void)snprintf(out, 100, "%s/%s%s%s", p->os, p->architecture, p->variant[0] ? "/" : "",
                   p->variant);
    return out;
}

/* 0: another platform. An entry of exactly the variant asked for is better than one without. */
static int platform_score(const json_t *have, const struct platform *want)
{
    const char *variant = text_of(have, "variant");
    if (strcmp(text_of(have, "os"), want->os) != 0 ||
        strcmp(text_of(have, "architecture"), want->architecture) != 0)
        return 0;
    if (want->variant[0])
        return strcmp(variant, want->variant) == 0 ? 3 : !*variant ? 1 : 0;
    /* Nothing asked: the plain one, and for arm64 "v8", which is the same thing. */
    return !*variant || strcmp(variant, "v8") == 0 ? 3 : 2;
}

/* ---- index ---- */

static bool type_has(const char *type, const char *word)
{
    return type && strstr(type, word);
}

int manifest_is_index(const char *p, size_t n, const char *content_type, bool *ret_index,
                      struct err *err)
{
    _cleanup_json_ json_t *doc = NULL;
    int r = load(p, n, &doc, err);
    if (r < 0)
        return r;
    const char *type = text_of(doc, "mediaType");
    const json_t *version = json_object_get(doc, "schemaVersion");
    if (type_has(content_type, "distribution.manifest.v1+") || json_integer_value(version) == 1)
        return err_fail_as(err, EBADMSG, FAIL_INVALID_IMAGE,
                           "the image is in docker's schema 1, which registries gave up long ago; "
                           "push it again with a current tool");
    if (!*type)
        type = content_type ? content_type : "";
    bool index = json_is_array(json_object_get(doc, "manifests"));
    bool layers = json_is_array(json_object_get(doc, "layers"));
    if (index && layers) /* the two readings of one document must not be confused */
        return bad(err, "is both an index and a manifest");
    if (!index && !layers)
        return bad(err, "has neither layers nor manifests");
    if (index != (type_has(type, "image.index") || type_has(type, "manifest.list")) &&
        (type_has(type, "image.index") || type_has(type, "manifest.list") ||
         type_has(type, "image.manifest") || type_has(type, "distribution.manifest.v2")))
        return bad(err, "is not of the type that it says");
    *ret_index = index;
    return 0;
}

static void list_platforms(const json_t *entries, char out[NAMES_MAX])
{
    const json_t *entry;
    size_t i, used = 0;
    out[0] = '\0';
    json_array_foreach(entries, i, entry) {
        const json_t *p = json_object_get(entry, "platform");
        const char *os = text_of(p, "os"), *arch = text_of(p, "architecture");
        if (!*os || strcmp(os, "unknown") == 0) /* attestations are no images */
            continue;
        int n = snprintf(out + used, NAMES_MAX - used, "%s%.16s/%.16s%s%.8s", used ? ", " : "", os,
                         arch, *text_of(p, "variant") ? "/" : "", text_of(p, "variant"));
        if (n < 0 || (size_t)n >= NAMES_MAX - used) {
            out[used] = '\0';
            return;
        }
        used += (size_t)n;
    }
}

int index_choose(const char *p, size_t n, const struct platform *platform,
                 struct descriptor *ret_entry, struct err *err)
{
    _cleanup_json_ json_t *doc = NULL;
    int r = load(p, n, &doc, err);
    if (r < 0)
        return r;
    const json_t *entries = json_object_get(doc, "manifests");
    const json_t *entry, *best = NULL;
    size_t i;
    int best_score = 0;
    if (!json_is_array(entries) || json_array_size(entries) > MANIFEST_INDEX_MAX)
        return bad(err, "is an index without a list, or with one too long");
    json_array_foreach(entries, i, entry) {
        int score = platform_score(json_object_get(entry, "platform"), platform);
        /* An index of a single entry that does not say what it is for: its configuration will. */
        if (json_array_size(entries) == 1 && !json_object_get(entry, "platform"))
            score = 1;
        if (score > best_score) {
            best = entry;
            best_score = score;
        }
    }
    if (!best) {
        char names[NAMES_MAX], want[100];
        list_platforms(entries, names);
        return err_fail(err, FAIL_UNSUPPORTED_PLATFORM,
                        "the image is not made for %s; it is for %s", platform_text(platform, want),
                        names[0] ? names : "no platform that it names");
    }
    return read_descriptor(best, MANIFEST_MAX, ret_entry, err);
}

/* ---- manifest ---- */

static int read_layer(const json_t *v, struct descriptor *ret_d, struct err *err)
{
    int r = read_descriptor(v, MANIFEST_LAYER_MAX, ret_d, err);
    if (r < 0)
        return r;
    if (strstr(ret_d->media_type, "nondistributable") || strstr(ret_d->media_type, "foreign") ||
        json_array_size(json_object_get(v, "urls")) > 0)
        return err_fail_as(err, ENOTSUP, FAIL_INVALID_IMAGE,
                           "layer %.19s is to be fetched from elsewhere (a foreign layer); such "
                           "images are not supported",
                           ret_d->digest);
    return 0;
}

int manifest_parse(const char *p, size_t n, const char *content_type, struct manifest *ret_m,
                   struct err *err)
{
    _cleanup_(manifest_done) struct manifest m = { 0 };
    _cleanup_json_ json_t *doc = NULL;
    bool index;
    int r = manifest_is_index(p, n, content_type, &index, err);
    if (r >= 0 && index)
        r = bad(err, "is an index where a manifest was asked for");
    if (r >= 0)
        r = load(p, n, &doc, err);
    if (r < 0)
        return r;
    const char *type = text_of(doc, "mediaType");
    if (!*type && type_has(content_type, "manifest"))
        type = content_type;
    if (!*type) /* OCI allows a manifest that does not say */
        type = "application/vnd.oci.image.manifest.v1+json";
    if (!media_type_valid(type))
        return bad(err, "has a media type that is no plain word");
    memcpy(m.media_type, type, strlen(type) + 1);
    r = read_descriptor(json_object_get(doc, "config"), MANIFEST_CONFIG_MAX, &m.config, err);
    if (r < 0)
        return r;
    if (!strstr(m.config.media_type, "image.config") &&
        !strstr(m.config.media_type, "container.image"))
        return err_fail_as(err, EBADMSG, FAIL_INVALID_IMAGE,
                           "'%s' is not the configuration of an image: what is there is something "
                           "else that the registry keeps",
                           m.config.media_type);
    const json_t *layers = json_object_get(doc, "layers");
    size_t count = json_array_size(layers);
    if (count < 1 || count > MANIFEST_LAYERS_MAX)
        return err_fail_as(err, EBADMSG, FAIL_INVALID_IMAGE,
                           "the image has %zu layers; 1 to %d are taken", count,
                           MANIFEST_LAYERS_MAX);
    m.layers = calloc(count, sizeof(*m.layers));
    if (!m.layers)
        return err_set(err, ENOMEM, "cannot allocate a manifest");
    for (; m.nlayers < count; m.nlayers++) {
        r = read_layer(json_array_get(layers, m.nlayers), &m.layers[m.nlayers], err);
        if (r < 0)
            return r;
    }
    *ret_m = m;
    m.layers = NULL;
    return 0;
}

void manifest_done(struct manifest *m)
{
    free(m->layers);
    m->layers = NULL;
    m->nlayers = 0;
}

/* ---- configuration ---- */

int config_check(const char *p, size_t n, size_t nlayers, const struct platform *platform,
                 char (**ret_diff_ids)[SHA_SIZE], struct err *err)
{
    _cleanup_json_ json_t *doc = NULL;
    if (load(p, n, &doc, err) < 0)
        return err_fail_as(err, EBADMSG, FAIL_INVALID_IMAGE,
                           "the image's configuration is not a JSON object");
    const char *os = text_of(doc, "os"), *arch = text_of(doc, "architecture");
    if (strcmp(os, platform->os) != 0 || strcmp(arch, platform->architecture) != 0) {
        char want[100];
        return err_fail(err, FAIL_UNSUPPORTED_PLATFORM,
                        "the image is not made for %s; it is for %.16s/%.16s",
                        platform_text(platform, want), *os ? os : "?", *arch ? arch : "?");
    }
    const json_t *ids = json_object_get(json_object_get(doc, "rootfs"), "diff_ids");
    if (json_array_size(ids) != nlayers)
        return err_fail_as(err, EBADMSG, FAIL_INVALID_IMAGE,
                           "the image's configuration is for %zu layers, its manifest has %zu",
                           json_array_size(ids), nlayers);
    _cleanup_free_ char(*out)[SHA_SIZE] = calloc(nlayers ? nlayers : 1, SHA_SIZE);
    if (!out)
        return err_set(err, ENOMEM, "cannot allocate a list of layers");
    for (size_t i = 0; i < nlayers; i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_string(id) || !sha_valid(json_string_value(id), json_string_length(id)))
            return err_fail_as(err, EBADMSG, FAIL_INVALID_IMAGE,
                               "the image's configuration has a diff_id that is no sha256 digest");
        memcpy(out[i], json_string_value(id), SHA_SIZE);
    }
    *ret_diff_ids = take_ptr(out);
    return 0;
}
