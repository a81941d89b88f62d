/* wash - an answer on its way back from a bound host, with every secret blotted out.
 *
 * Lengths stay as they were promised; chunks are taken apart and made anew, so that none can part a
 * secret, and trailers are left out. As flow.h in all else: bounded memory, nothing blocks. */
#pragma once
#include "broker/flow.h"
#include "net/blot.h"
#include "net/blot_frames.h"
#include "net/head.h"

struct wash {
    struct body body;
    struct blot blot;
    struct blot_frames *frames; /* WebSocket's; NULL: bytes */
    struct buf *kept;           /* borrowed: gets the unwashed body; NULL: it is sent on */
    bool chunks;                /* send it in chunks */
    bool over;                  /* all of it was read */
    uint64_t passed;            /* bytes that came */
    size_t most;                /* as in struct flow */
};

struct wash_head {
    struct blot_words *words;
    bool hides;  /* nothing may go by that could not be looked through */
    bool keep;   /* the client's connection will be used again */
    bool chunks; /* what has no length is sent in chunks */
    bool inner;  /* the client came without TLS, to a name of ours */
};

/* The head of an answer as the client gets it. -ENOMEM, -EMSGSIZE. */
int wash_head(const struct head *h, const struct wash_head *how, struct buf *out);

int wash_start(struct wash *w, enum body_kind kind, uint64_t length, struct blot_words *words,
               bool chunks);
/* What follows an upgrade; frames: it is to be looked through. */
int wash_start_socket(struct wash *w, struct blot_words *words, bool frames);
void wash_done(struct wash *w); /* also of one that never began */
enum flow_state wash_run(struct wash *w, struct sock *from, struct buf *early, struct sock *to,
                         struct buf *pending);
