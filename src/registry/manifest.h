/* manifest - the JSON documents of an image: index, manifest, configuration.
 *
 * Reads what OCI's image format and docker's schema 2 have in common, and refuses the rest by
 * name. Whatever the documents say is bounded and checked here; their bytes must have been
 * compared with their digest before. Does no I/O. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "registry/sha.h"

#define MANIFEST_MAX (4u * 1024 * 1024) /* what registries accept */
#define MANIFEST_CONFIG_MAX (8u * 1024 * 1024)
#define MANIFEST_LAYERS_MAX 512
#define MANIFEST_LAYER_MAX (64ull << 30) /* bytes of one layer, as it is sent */
#define MANIFEST_INDEX_MAX 10000         /* entries */
#define MEDIA_TYPE_MAX 128

/* What a request for a manifest says it takes. */
#define MANIFEST_ACCEPT                                           \
    "application/vnd.oci.image.index.v1+json, "                   \
    "application/vnd.docker.distribution.manifest.list.v2+json, " \
    "application/vnd.oci.image.manifest.v1+json, "                \
    "application/vnd.docker.distribution.manifest.v2+json"

struct descriptor {
    char digest[SHA_SIZE];
    char media_type[MEDIA_TYPE_MAX];
    uint64_t size;
};

struct manifest {
    char media_type[MEDIA_TYPE_MAX];
    struct descriptor config;
    struct descriptor *layers;
    size_t nlayers;
};

struct platform {
    char os[32], architecture[32], variant[32]; /* variant empty: none asked for */
};

/* "linux/arm64/v8", "arm64", or NULL: this machine. invalid_field for what is none. */
int platform_parse(const char *text, struct platform *ret_platform, struct err *err);
const char *platform_text(const struct platform *p, char out[100]);

/* `content_type`: what the server called it (NULL or empty: not said). True: it is an index. */
int manifest_is_index(const char *p, size_t n, const char *content_type, bool *ret_index,
                      struct err *err);
/* The entry for this platform: unsupported_platform names what there is instead. */
int index_choose(const char *p, size_t n, const struct platform *platform,
                 struct descriptor *ret_entry, struct err *err);
/* All failures are invalid_image. */
int manifest_parse(const char *p, size_t n, const char *content_type, struct manifest *ret_m,
                   struct err *err);
void manifest_done(struct manifest *m);

/* What a configuration must agree with: as many diff_ids as the manifest has layers, and the
 * platform. *ret_diff_ids (the caller frees) has nlayers entries. */
int config_check(const char *p, size_t n, size_t nlayers, const struct platform *platform,
                 char (**ret_diff_ids)[SHA_SIZE], struct err *err);
