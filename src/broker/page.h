/* page - what a client gets when no server inside could answer: a page for a person, JSON for a
 * program, both saying what is wrong and what to do.
 *
 * The JSON has our own error object and, beside it, the members by which E2B's clients know such
 * an answer: sandboxId, message, code, port. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum page {
    PAGE_BAD_REQUEST,
    PAGE_HEAD_TOO_LARGE,
    PAGE_NOBODY, /* its Host leads nowhere */
    PAGE_NO_SANDBOX,
    PAGE_GONE,
    PAGE_ASLEEP,
    PAGE_CLOSED,
    PAGE_FORBIDDEN,
    PAGE_LIMITED,
    PAGE_BROKEN, /* the server inside broke off or made no sense */
    PAGE_FAILED, /* we could not */
};

struct page_about {
    const char *sandbox; /* "": none */
    unsigned port;
    const char *cause; /* of its end, or of its sleep; "": not known */
    int64_t ended_ms;  /* 0: it has not */
    bool html, keep, no_body;
};

int page_write(enum page page, const struct page_about *about, struct buf *out);
