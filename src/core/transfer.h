/* transfer - an image on its way from a registry (a pull) or to one (a push).
 *
 * Runs in threads of its own; whoever started it reads how far it is. Progress is a state and a
 * count a layer, not a queue: a slow reader misses steps, never the end. Freeing one that goes on
 * cancels it; what a pull has fetched by then is kept for the next. Where the bytes come from is
 * registry/'s business, where they are kept image.h's. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/image.h"
#include "registry/reference.h"

struct transfer;

struct transfer_config {
    const char *owner;
    const char *image;               /* where: [host[:port]/]repo[:tag][@digest] */
    const char *name;                /* here; pull: NULL for the same, push: required */
    const char *platform;            /* pull: NULL for this machine's */
    const char *username, *password; /* NULL: none */
    bool insecure;
    bool trusted; /* asked by the operator: may be sent to private addresses */
};

/* Check what was asked, then begin. What config points to is copied. */
int pull_start(struct core *core, const struct transfer_config *config, struct transfer **ret_t,
               struct err *err);
int push_start(struct core *core, const struct transfer_config *config, struct transfer **ret_t,
               struct err *err);

enum transfer_state {
    TRANSFER_WAITING,
    TRANSFER_DOWNLOADING,
    TRANSFER_UNPACKING,
    TRANSFER_UPLOADING,
    TRANSFER_DONE,
    TRANSFER_EXISTS,
};
const char *transfer_state_name(enum transfer_state state);

struct transfer_event {
    enum { TRANSFER_LAYER, TRANSFER_IMAGE, TRANSFER_FAILED } type;
    char digest[DIGEST_SIZE]; /* the layer's; TRANSFER_IMAGE: the manifest's */
    enum transfer_state state;
    uint64_t bytes, total;
    char reference[REFERENCE_TEXT_MAX]; /* TRANSFER_IMAGE: where it is or was, in full */
    struct image image;
    struct err err; /* TRANSFER_FAILED */
};
/* 1 and what is new; 0 after the time-out. After TRANSFER_IMAGE or TRANSFER_FAILED there is
 * nothing more. */
int transfer_next(struct transfer *t, int timeout_ms, struct transfer_event *ret_event);
void transfer_free(struct transfer *t); /* waits until its threads have ended; NULL is fine */
DEFINE_FREEP(struct transfer *, transfer_free)
