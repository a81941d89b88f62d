/* build - an image made from a Dockerfile or a recipe: each step in a cell of its own, a layer a
 * step.
 *
 * The host opens no path of the context: its tar is unpacked inside a cell that holds nothing
 * else, and files go from there to the step's cell through both inits. The cells are no sandboxes
 * of a user's: they are in no list and in no database, so what a crash leaves is removed at the
 * next start like any cell that nobody knows; they count for the team's quota. A step whose words,
 * variables and files are as before is taken from the cache.
 *
 * A build runs in a thread of its own; whoever began it reads what happens. Freeing one that goes
 * on cancels it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "core/core.h"
#include "core/image.h"
#include "wire/wire.h"

#define BUILDS_MAX 4 /* at once, of all owners: each may use two cpus and 2 GiB */

struct build;

/* A step of a recipe: RUN {command, [user]}, COPY {source, destination, [user], [mode]} of an
 * upload, ENV {name, value, ...}, WORKDIR {path}, USER {name}. */
struct build_step {
    const char *type;
    const char *const *args;
    size_t n_args;
    const char *files; /* COPY: the upload's hash (upload.h) */
    bool fresh;        /* neither this one nor a later one comes from the cache */
};
/* Steps on an image, for clients that have no Dockerfile. Their lines are the steps' numbers, from
 * 1; what is done to the image before the first is line 0. */
struct build_recipe {
    const char *base;                /* an image */
    const char *base_owner;          /* whose; NULL: the builder's */
    const char *username, *password; /* for its registry; NULL: none */
    const char *user, *workdir;      /* to begin with */
    const char *provision;           /* a user who must be there, and may sudo; NULL: none */
    const struct build_step *steps;
    size_t n;
};

struct build_config {
    const char *owner, *name;
    const char *dockerfile; /* in the context; NULL: "Dockerfile" */
    const char *target;     /* NULL: the last stage */
    const char *network;    /* what commands of its steps may reach (network.h); NULL: nothing */
    const struct pairs *args;
    bool no_cache;
    bool public;
    bool trusted;                      /* asked by the operator: may pull from private addresses */
    const struct build_recipe *recipe; /* instead of a Dockerfile and its context; NULL: none */
};

/* Checks what was asked and makes the place for the context. */
int build_begin(struct core *core, const struct build_config *config, struct build **ret_build,
                struct err *err);
/* The context, a tar packed in any way, as it comes; a recipe has none. */
int build_write(struct build *build, const void *p, size_t n, struct err *err);
/* All of the context is there: go. */
int build_start(struct build *build, struct err *err);

enum build_event_type {
    BUILD_STEP,    /* n, of, line, text */
    BUILD_CACHED,  /* n */
    BUILD_LOG,     /* n, stream, text: not checked for UTF-8 */
    BUILD_LAYER,   /* n, digest, size_bytes */
    BUILD_WARNING, /* line, text */
    BUILD_IMAGE,   /* image; the last one */
    BUILD_FAILED,  /* err, line (0: none); the last one */
};
struct build_event {
    enum build_event_type type;
    unsigned n, of, line;
    enum wire_stream stream;
    char *text; /* owned; len bytes and a NUL */
    size_t len;
    char digest[DIGEST_SIZE];
    uint64_t size_bytes;
    struct image image;
    struct err err;
};
/* 1 and what happened next (build_event_done it); 0 after timeout_ms without anything; -ECANCELED
 * when hangup_fd (-1: none) was closed by its peer. */
int build_next(struct build *build, int timeout_ms, int hangup_fd, struct build_event *ret_event);
void build_event_done(struct build_event *event);
void build_free(struct build *build); /* waits until all of it is gone; NULL is fine */
