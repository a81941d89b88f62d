/* registry - one repository at an OCI registry: read its manifests and blobs, or add some.
 *
 * Speaks version 2 of the distribution API over exchange.h, answers challenges, follows redirects
 * without taking credentials elsewhere, and tries again when a line breaks, from where it broke.
 * Knows nothing of where blobs are kept: bytes go to a sink and come from a descriptor. Blocks; may be
 * used by several threads at once. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "registry/access.h"
#include "registry/manifest.h"
#include "registry/reference.h"

struct registry;

struct registry_config {
    const struct reference *ref;
    const char *username, *password; /* NULL or empty: none */
    bool insecure;                   /* plain HTTP, or a certificate that nobody vouches for */
    bool push;                       /* ask for the right to */
    struct access access;
    unsigned timeout_s; /* of silence */
    bool (*cancelled)(void *arg);
    void *arg;
};

/* Copies what config points to, but arg. Talks to the host only where it must find out whether it
 * speaks TLS: loopback and insecure ones. */
int registry_new(const struct registry_config *config, struct registry **ret_reg, struct err *err);
void registry_free(struct registry *reg);
DEFINE_FREEP(struct registry *, registry_free)

/* ---- read ---- */

/* `what` is a tag or a digest; the bytes are appended to out and, for a digest, checked. The type
 * is what the server called it, empty if nothing. */
int registry_manifest_get(struct registry *reg, const char *what, struct buf *out,
                          char ret_type[MEDIA_TYPE_MAX], char ret_digest[SHA_SIZE],
                          struct err *err);
/* A small blob, whole and checked. */
int registry_blob_read(struct registry *reg, const struct descriptor *d, struct buf *out,
                       struct err *err);

struct registry_sink {
    int (*write)(void *arg, const void *p, size_t n, struct err *err);
    int (*restart)(void *arg, struct err *err); /* drop it all: the server begins at 0 again */
};
/* Bytes from..size of a blob. What was written is not checked against the digest: only the sink
 * sees all of it. */
int registry_blob_fetch(struct registry *reg, const struct descriptor *d, uint64_t from,
                        const struct registry_sink *sink, void *arg, struct err *err);

/* ---- write ---- */

int registry_blob_has(struct registry *reg, const char *digest, struct err *err); /* 1, 0 */
typedef void (*registry_sent_fn)(void *arg, uint64_t bytes);
/* Send the blob in fd (borrowed; its whole content). `mount_from`: NULL, or a repository of the same
 * registry that may have it, so that nothing need be sent. 1 if it was mounted, else 0. */
int registry_blob_put(struct registry *reg, const struct descriptor *d, int fd,
                      const char *mount_from, registry_sent_fn sent, void *arg, struct err *err);
int registry_manifest_put(struct registry *reg, const char *what, const char *type, const char *p,
                          size_t n, struct err *err);
