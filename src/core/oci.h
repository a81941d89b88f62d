/* oci - the JSON of images: manifests, indexes, configurations, read and written.
 *
 * Everything read here came from a registry or an archive: sizes are bounded, every digest has the
 * shape of one, and what is missing is an error with a sentence (invalid_image). Docker's own
 * media types mean the same as OCI's. Pure functions over memory. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "core/digest.h"
#include "core/sandbox.h"

#define OCI_JSON_MAX (8u * 1024 * 1024) /* registries take manifests of 4 MiB */
#define OCI_LAYERS_MAX 512              /* overlay engines stop at 127 or so */
#define OCI_TYPE_MAX 128

#define OCI_INDEX "application/vnd.oci.image.index.v1+json"
#define OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define OCI_CONFIG "application/vnd.oci.image.config.v1+json"
#define OCI_LAYER "application/vnd.oci.image.layer.v1.tar"
#define OCI_LAYER_GZIP "application/vnd.oci.image.layer.v1.tar+gzip"
#define OCI_LAYER_ZSTD "application/vnd.oci.image.layer.v1.tar+zstd"
#define DOCKER_INDEX "application/vnd.docker.distribution.manifest.list.v2+json"
#define DOCKER_MANIFEST "application/vnd.docker.distribution.manifest.v2+json"
#define DOCKER_CONFIG "application/vnd.docker.container.image.v1+json"
#define DOCKER_LAYER "application/vnd.docker.image.rootfs.diff.tar"
#define DOCKER_LAYER_GZIP "application/vnd.docker.image.rootfs.diff.tar.gzip"

/* What a manifest points at. */
struct oci_blob {
    char digest[DIGEST_SIZE];
    char media_type[OCI_TYPE_MAX];
    uint64_t size;
};

struct oci_manifest {
    struct oci_blob config;
    struct oci_blob *layers; /* lowest first */
    size_t n;
};
int oci_manifest_parse(const char *text, size_t n, struct oci_manifest *ret_m, struct err *err);
void oci_manifest_done(struct oci_manifest *m);
/* An OCI manifest of these; the caller frees it. NULL: no memory. */
char *oci_manifest_text(const struct oci_blob *config, const struct oci_blob *layers, size_t n);

/* True for an index (a list of manifests), going by its media type or its members. */
bool oci_is_index(const char *text, size_t n);
/* The entry for a platform ("linux/amd64", "linux/arm64/v8"; NULL: this machine's). ref, if not
 * NULL, is what org.opencontainers.image.ref.name (or containerd's image name) must be where an
 * index has several. -ENOENT with unsupported_platform, naming what there is. */
int oci_index_pick(const char *text, size_t n, const char *platform, const char *ref,
                   struct oci_blob *ret_blob, struct err *err);
const char *oci_machine(void); /* "amd64", "arm64" … as images call this machine */

struct oci_history {
    char *created_by;
    int64_t created_ms;
    bool empty; /* made no layer */
};

/* A configuration. Everything is owned; absent texts are NULL, absent lists empty. */
struct image_config {
    char *os, *architecture, *user, *workdir, *stop_signal;
    struct pairs env, labels;
    char **cmd, **entrypoint, **shell, **ports, **volumes; /* each ends with a NULL; may be NULL */
    char **diff_ids;                                       /* checked digests */
    size_t n_diff_ids;
    struct oci_history *history; /* oldest first */
    size_t n_history;
    int64_t created_ms;
};
int image_config_parse(const char *text, size_t n, struct image_config *ret_c, struct err *err);
void image_config_done(struct image_config *c);
int image_config_copy(const struct image_config *from, struct image_config *ret_to); /* -ENOMEM */
/* The configuration as JSON text (canonical: the same config gives the same text); the caller frees
 * it. NULL: no memory. Members that struct image_config does not know are lost. */
char *image_config_text(const struct image_config *c);
/* One more layer, or with diff_id NULL one more step that made none. */
int image_config_add(struct image_config *c, const char *diff_id, const char *created_by,
                     int64_t created_ms);            /* -ENOMEM */
int strings_copy(char *const *from, char ***ret_to); /* NULL-terminated lists; -ENOMEM */
void strings_free(char **list);
