/* answer_redact - an answer on its way back from a bound host, with every secret hidden.
 *
 * Lengths stay as they were promised; chunks are taken apart and made anew, so that none can part a
 * secret, and trailers are left out. As flow.h in all else: bounded memory, nothing blocks. */
#pragma once
#include "broker/flow.h"
#include "net/redact.h"
#include "net/redact_frames.h"
#include "net/head.h"

struct answer_redact {
    struct body body;
    struct redact redact;
    struct redact_frames *frames; /* WebSocket's; NULL: bytes */
    struct buf *kept;             /* borrowed: gets the unredacted body; NULL: it is sent on */
    bool chunks;                  /* send it in chunks */
    bool over;                    /* all of it was read */
    uint64_t passed;              /* bytes that came */
    size_t most;                  /* as in struct flow */
};

struct answer_redact_head {
    struct redact_words *words;
    bool hides;  /* nothing may go by that could not be looked through */
    bool keep;   /* the client's connection will be used again */
    bool chunks; /* what has no length is sent in chunks */
    bool inner;  /* the client came without TLS, to a name of ours */
};

/* The head of an answer as the client gets it. -ENOMEM, -EMSGSIZE. */
int answer_redact_head(const struct head *h, const struct answer_redact_head *how, struct buf *out);

int answer_redact_start(struct answer_redact *w, enum body_kind kind, uint64_t length,
                        struct redact_words *words, bool chunks);
/* What follows an upgrade; frames: it is to be looked through. */
int answer_redact_start_socket(struct answer_redact *w, struct redact_words *words, bool frames);
void answer_redact_done(struct answer_redact *w); /* also of one that never began */
enum flow_state answer_redact_run(struct answer_redact *w, struct sock *from, struct buf *early,
                                  struct sock *to, struct buf *pending);
