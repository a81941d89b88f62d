/* archive_job - one archiving or fetching in a thread of its own, and how far it is.
 *
 * Progress is a state, not a queue: a slow reader misses steps, never the end. Freeing one that goes on cancels it. */
#pragma once
#include "core/archive.h"

struct archive_job;

enum archive_work { ARCHIVE_PUT, ARCHIVE_FETCH, ARCHIVE_SANDBOX, ARCHIVE_IMPORT };

struct archive_ask {
    enum archive_work work;
    const char *owner, *who;
    bool keep_local; /* ARCHIVE_PUT */
};
int archive_job_start(struct core *core, const struct archive_ask *ask, struct archive_job **ret_j,
                      struct err *err);

struct archive_event {
    enum { ARCHIVE_PROGRESS, ARCHIVE_DONE, ARCHIVE_FAILED } type;
    struct archive_progress progress;    /* at the end too: what it all came to */
    const struct checkpoint *checkpoint; /* ARCHIVE_DONE, of a checkpoint; the job's */
    const struct sandbox *sandbox;       /* ARCHIVE_DONE, of a sandbox */
    struct err err;                      /* ARCHIVE_FAILED */
};
/* 1 and what is new; 0 after the time-out. Nothing comes after the end. */
int archive_job_next(struct archive_job *j, int timeout_ms, struct archive_event *ret_event);
void archive_job_free(struct archive_job *j); /* waits for its thread; NULL is fine */
DEFINE_FREEP(struct archive_job *, archive_job_free)
