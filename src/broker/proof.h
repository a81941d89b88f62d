/* proof - what a client brings to show who it is, found in a request's head.
 *
 * A preview token comes in X-Warren-Preview-Token, as warren_token in the query or in a cookie of ours;
 * E2B's in a header of its own; and a key of Warren's where keys are. What of it is in the target or
 * in Referer is cut out of what is sent on. Nothing is decided here. Pure functions. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "net/head.h"
#include "wire/broker.h"

enum proof_cookies {
    PROOF_COOKIE,     /* may be the proof: the one of a client that came without TLS, */
    PROOF_COOKIE_TLS, /* or with it */
    PROOF_NO_COOKIE,  /* must not */
};

/* -EINVAL: a header with a token that is too long to be one. *ret_query: it came in the query. */
int proof_find(const struct head *h, enum proof_cookies cookies, struct broker_proof *ret_proof,
               bool *ret_query);
/* Has it what proof_cut would cut? */
bool proof_in_url(struct text url);
/* A target, or a whole URL, without the token. */
int proof_cut(struct text url, struct buf *out);
/* It has the shape of a key of ours: letters, '_', 40 hex digits. An application's own keys pass. */
bool proof_is_key(struct text t);
/* The name of the cookie that holds a token: one that no neighbour can set, where that can be. */
const char *proof_cookie(bool tls);
