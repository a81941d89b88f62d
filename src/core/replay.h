/* replay - a request that may come twice and must act once: what a key made, and its answer.
 *
 * A client names a request; the name and a hash of what it asks are recorded before anything is
 * done, then what is being made (before it is), then the answer. A second request of the same name
 * gets that answer. One that a crash cut finds what was made, if it was: never two. Answers that
 * hold a secret stay in memory. Recorded for REPLAY_MS, REPLAY_KEEP of them an owner. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/core.h"

#define REPLAY_MS (24 * 3600 * INT64_C(1000))
#define REPLAY_KEEP 10000
#define REPLAY_BODY_MAX (16u * 1024) /* a larger answer is made anew from what there is */
#define REPLAY_MADE_MAX 64
#define REPLAY_HASH_SIZE 65

struct replay;

struct replay_answer {
    unsigned status;
    char *body; /* NULL: was too large, or never given */
    char *etag; /* NULL: none */
};
void replay_answer_done(struct replay_answer *a);

enum replay_found {
    REPLAY_NEW, /* act, then replay_end */
    REPLAY_KNOWN /* *ret_answer is the answer */,
    REPLAY_MADE, /* `made` was made and its answer is not known: answer from it, then replay_end */
};

/* `ask` is all that makes the request what it is. idempotency_mismatch when the name stands for
 * another request, idempotency_busy while that one is at work. Until replay_end this thread's
 * replay_note is about it. */
int replay_begin(struct core *core, const char *owner, const char *name, const void *ask, size_t n,
                 bool secret, struct replay **ret_replay, struct replay_answer *ret_answer,
                 char made[REPLAY_MADE_MAX], struct err *err);
/* answer NULL: it failed, so that the next try acts again, unless what it made is there. Frees. */
void replay_end(struct core *core, struct replay *replay, const struct replay_answer *answer);

/* This thread is about to make a thing (`kind` and its id); nothing where no replay is at work. */
void replay_note(struct core *core, const char *kind, const char *id);
void replays_done(struct core *core);
