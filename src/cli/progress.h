/* progress - the layers of an image on their way, for people.
 *
 * On a terminal a line a layer, redrawn in place; elsewhere a plain line whenever a layer's state
 * changes, so that a log stays readable. Fed with the API's events; all of it goes to stderr. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define PROGRESS_DIGEST 20 /* "sha256:" and twelve digits */

struct progress_layer {
    char digest[PROGRESS_DIGEST], state[16];
    int64_t bytes, total;
};

struct progress {
    bool terminal, quiet;
    struct progress_layer *layers;
    size_t n;
    unsigned drawn; /* lines on the terminal that are ours */
    int64_t drawn_ms;
};

void progress_init(struct progress *p, bool quiet);
void progress_layer(struct progress *p, const json_t *event); /* of type "layer" */
void progress_done(struct progress *p);                       /* the last drawing */
