/* call - one request of the daemon's, decoded and checked.
 *
 * Pure: a frame's payload in, a struct out. Nothing is copied: strings point into the payload,
 * which is terminated in place for them. Which field a request may carry, of which kind and how
 * large, is one table in call.c. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/wire.h"

#define CALL_STRINGS_MAX (256u * 1024) /* argv and env together; more than execve takes */
#define CALL_LABEL_MAX 256

struct call {
    enum wire_type type;
    uint64_t have; /* bit per wire_tag */
    char **argv;   /* argv, NULL, env, NULL: one allocation; NULL unless START */
    char **env;
    size_t argc, envc;
    const char *cwd, *user, *label; /* "" when absent */
    const char *data;
    size_t data_n;
    uint64_t flags, rows, cols, timeout_ms, nofile, ring_bytes;
    uint64_t proc, since, signo, scope, grace_ms;
    uint64_t together_ms; /* START: what STARTED may wait for what follows it */
};

/* payload[h->len] must be writable: it may become the last string's end. -EPROTO: not a request or
 * not made of fields, the peer is broken; -EINVAL, -E2BIG, ...: err says what to answer. The call
 * borrows the payload. */
int call_decode(const struct wire_header *h, char *payload, struct call *ret_call, struct err *err);
void call_done(struct call *call);

static inline int call_has(const struct call *call, enum wire_tag tag)
{
    return (call->have >> tag & 1) != 0;
}
