/* progress - how far a long job is, as lines of JSON, until its end.
 *
 * A ping breaks a long silence, and a client that goes away ends the job. What fails before anything was told is an
 * answer of its own, with a status. */
#pragma once
#include "front/native/native.h"

struct progress {
    /* 1: an event, written to *out as one object; *ret_last if none comes after it, and if it is a failure *ret_err
     * says which (else it is left alone). 0: none within that time. */
    int (*next)(void *job, int wait_ms, struct jout *out, bool *ret_last, struct err *ret_err);
    void (*free)(void *job); /* ends it too */
};

/* Takes the job, whatever comes of it. */
int progress_reply(struct request *req, const struct progress *how, void *job, struct err *err);
