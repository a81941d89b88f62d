/* coding - content codings of bodies, both ways and by stream: gzip and zstd.
 *
 * A decoder is fed pieces and hands what they hold to a function; an encoder pulls from one and
 * fills a buffer. Neither keeps more than a window: what a small body decodes to is bounded by
 * whoever takes it, not here. Knows nothing of HTTP but the names. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"

enum coding { CODING_NONE, CODING_GZIP, CODING_ZSTD };

/* Of a Content-Encoding (NULL: none). -EINVAL for one that is not known. */
int coding_parse(const char *content_encoding, enum coding *ret_coding);
/* The best that an Accept-Encoding (NULL: none) takes. */
enum coding coding_accepted(const char *accept_encoding);
const char *coding_name(enum coding coding);

struct decoder;
/* Below zero stops the feeding and is what decoder_feed returns. */
typedef int (*decoder_out_fn)(void *arg, const char *p, size_t n);
int decoder_new(enum coding coding, struct decoder **ret_decoder);
int decoder_feed(struct decoder *d, const char *p, size_t n, decoder_out_fn out,
                 void *arg);                    /* -EBADMSG: bad data */
bool decoder_is_plain(const struct decoder *d); /* what comes out is what goes in */
int decoder_end(const struct decoder *d);       /* -EBADMSG: it was cut */
void decoder_free(struct decoder *d);
DEFINE_FREEP(struct decoder *, decoder_free)

struct encoder;
/* How many bytes, 0 at the end, below zero to stop. */
typedef ssize_t (*encoder_in_fn)(void *arg, char *out, size_t max);
int encoder_new(enum coding coding, struct encoder **ret_encoder);
ssize_t encoder_read(struct encoder *e, char *out, size_t max, encoder_in_fn in, void *arg);
void encoder_free(struct encoder *e);
DEFINE_FREEP(struct encoder *, encoder_free)
