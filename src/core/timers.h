/* timers - ends of life that come by themselves, and the few threads that carry them out.
 *
 * One thread sleeps until the next deadline and only looks; what is due becomes a job for the
 * workers, so that a slow end delays nobody else's. Deadlines are wall time and in the database:
 * they survive a restart. Nothing here blocks the caller. */
#pragma once
#include "core/private.h"

enum job_kind {
    JOB_END,       /* its time is over, or an end that failed is due again */
    JOB_IDLE,      /* look whether it is idle */
    JOB_SAVE,      /* an automatic checkpoint is due */
    JOB_RESTART,   /* restart.h wants it started */
    JOB_THAW,      /* something came for one that is frozen */
    JOB_DEATH,     /* its init died by itself, in life `life` */
    JOB_DISK,      /* how much room is left */
    JOB_TIDY,      /* the database's log */
    JOB_PRUNE,     /* old events and records */
    JOB_COLLECT,   /* what is in object storage and nobody needs */
    JOB_UNARCHIVE, /* a sandbox is gone: what it had there goes too */
};

struct job {
    struct job *next;
    enum job_kind kind;
    char id[ID_SIZE];
    unsigned life;
};

int timers_start(struct core *core, struct err *err);
void timers_stop(struct core *core);
/* A deadline may have come closer. */
void timers_changed(struct core *core);

/* jobs.c */
int jobs_start(struct core *core, struct err *err);
void jobs_stop(struct core *core);
bool jobs_add(struct core *core, enum job_kind kind, const char *id, unsigned life);
void jobs_dequeued(struct core *core, const char *id); /* the timers may queue it again */
