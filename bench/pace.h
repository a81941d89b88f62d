/* pace - how many sandboxes a second, and what one more costs where many live already.
 *
 * The pace: clients that make, use and delete sandboxes, and as many threads that do the same work
 * with the kernel's calls alone (floor.h), in turn. The many: creates beside a few live sandboxes
 * and beside a thousand, and the floor's at both times, so that a kernel that slows down by itself
 * is told from a daemon that does. */
#pragma once
#include "crowd.h"
#include "sample.h"

struct pace {
    unsigned clients, turns, seconds;  /* a turn lasts so long */
    double ours, floors;               /* lives a second */
    double our_busy_ms, floor_busy_ms; /* of processors, for each life */
    unsigned failures;
    char first_failure[400];
};
void pace_run(const struct crowd_daemon *d, const char *pool, struct pace *pace);

struct many {
    unsigned few, many, lives; /* so many lives are timed at each */
    struct sample create_few, create_many, floor_few, floor_many;
    double busy_few_ms, busy_many_ms; /* of processors, for each of ours: create and delete */
    unsigned failures;
    char first_failure[400];
};
void many_run(const struct crowd_daemon *d, const char *pool, struct many *many);
