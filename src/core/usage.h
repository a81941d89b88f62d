/* usage - what sandboxes have used, by hour: cpu time, memory and disk over time.
 *
 * One thread reads every running sandbox's counters once in an interval, one after another and
 * spread over it, for the keeper has one thread and better things to do; the last reading comes
 * with the keeper's answer to a stop or a delete. A round is written in one transaction,
 * together with how far each sandbox has been counted, so that neither a crash nor a restart
 * loses or doubles anything. */
#pragma once
#include "base/id.h"
#include "core/core.h"
#include "core/meter.h"

struct usage_row {
    char sandbox[ID_SIZE]; /* empty: a sum */
    char *name;            /* NULL: none, or no longer known */
    int64_t from_ms;       /* of a step */
    struct usage_amount amount;
};

struct usage_query {
    const char *owner;
    const char *sandbox;    /* an id; NULL: all */
    int64_t from_ms, to_ms; /* whole hours */
    unsigned step_hours;    /* 0: no steps */
    const char *after;      /* list the sandboxes from behind this id; NULL: from the first */
    unsigned limit;         /* of that list */
};

struct usage_report {
    struct usage_amount total;
    struct usage_row *sandboxes, *steps;
    size_t n_sandboxes, n_steps;
};
int usage_read(struct core *core, const struct usage_query *query, struct usage_report *ret_report,
               struct err *err);
void usage_report_done(struct usage_report *report);
