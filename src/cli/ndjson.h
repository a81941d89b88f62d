/* ndjson - a stream of JSON objects, one a line, as they arrive.
 *
 * Bytes in, in any pieces; whole parsed lines out, to a function. A line that is cut is kept
 * until its rest comes; one longer than NDJSON_LINE_MAX ends the stream. Does no I/O. */
#pragma once
#include <jansson.h>

#include "base/buf.h"

#define NDJSON_LINE_MAX (2u << 20) /* a 64 KiB frame with every byte escaped is 400 KB */

/* Borrows the object. Below zero stops the stream with that error. */
typedef int (*ndjson_fn)(void *arg, const json_t *object);

struct ndjson {
    struct buf part;
    ndjson_fn fn;
    void *arg;
};

void ndjson_init(struct ndjson *nd, ndjson_fn fn, void *arg);
void ndjson_done(struct ndjson *nd);
/* 0; -EPROTO for a line that is not an object; -EMSGSIZE for one too long; or what fn said. */
int ndjson_feed(struct ndjson *nd, const char *p, size_t n);
int ndjson_end(struct ndjson *nd); /* the last line may lack its newline */

/* The bytes of an output event, whichever way they were written: "data" or "data_b64" (in a
 * sandbox's log "text" or "text_b64"). The memory is *scratch's or the object's. 0, or -EPROTO. */
int event_bytes(const json_t *event, struct buf *scratch, const char **ret_p, size_t *ret_n);
