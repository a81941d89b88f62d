/* envelope - Connect's messages in a body, taken out of the pieces it arrives in.
 *
 * Five bytes of head (flags, length) and the message. A length over the limit is refused when the
 * head is there, before any of it is kept. Knows nothing of what the messages mean. */
#pragma once
#include "base/buf.h"

#define ENVELOPE_SIZE 5
#define ENVELOPE_COMPRESSED 1
#define ENVELOPE_END 2
#define ENVELOPE_MAX (16u * 1024 * 1024)

struct envelopes {
    unsigned char head[ENVELOPE_SIZE];
    size_t n_head, left; /* of the head; of the message that is being read */
    struct buf message;
};
#define ENVELOPES_INIT                    \
    {                                     \
        .message = BUF_INIT(ENVELOPE_MAX) \
    }

/* Each whole message; below zero stops the feeding and is what envelopes_feed returns. */
typedef int (*envelope_fn)(void *arg, unsigned flags, const char *p, size_t n);
/* -EMSGSIZE: one that is too long. */
int envelopes_feed(struct envelopes *e, const char *p, size_t n, envelope_fn fn, void *arg);
int envelopes_end(const struct envelopes *e); /* -EBADMSG: one was cut */
void envelopes_done(struct envelopes *e);
