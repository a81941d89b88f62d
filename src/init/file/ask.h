/* ask - one FILE request of the daemon's, decoded and checked.
 *
 * Pure, like `call`: a payload in, a struct out; strings point into the payload, which is
 * terminated in place for them. Which operation takes which field, of which kind and how large,
 * and what it cannot do without, are two tables in ask.c. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/wire.h"

#define ASK_STRINGS_MAX 65536 /* paths and patterns together */
#define ASK_TEXT_MAX 65536    /* of what is looked for, and of what replaces it */

struct ask {
    enum wire_file_op op;
    uint64_t have[4];   /* bit per wire_tag */
    const char **paths; /* then the patterns: one allocation */
    const char **patterns;
    size_t n_paths, n_patterns;
    const char *user, *to, *text, *owner, *etag, *after, *root; /* "" when absent */
    const char *xattr;                                          /* its name; NULL when absent */
    const char *value;
    size_t value_n;
    uint64_t flags, offset, length, mode, size, depth, limit, type;
};

/* payload[n] must be writable: it may become the last string's end. -EPROTO: not made of fields;
 * -EINVAL, ...: err says what to answer. The ask borrows the payload. */
int ask_decode(char *payload, size_t n, struct ask *ret_ask, struct err *err);
void ask_done(struct ask *ask);

static inline bool ask_has(const struct ask *ask, enum wire_tag tag)
{
    return (ask->have[tag / 64] >> tag % 64 & 1) != 0;
}

static inline bool ask_is(const struct ask *ask, enum wire_flag flag)
{
    return (ask->flags & flag) != 0;
}
