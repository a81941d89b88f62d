/* crowd - many sandboxes at once: a storm of short lives, and a thousand that sit idle.
 *
 * The storm: as many clients as asked, each making, using and deleting sandboxes until the time
 * is up; then everything the daemon ever made in it is looked for in the process table, the
 * cgroups, the mounts and the directories. The idle: so many kept alive, each used once, and what
 * they cost the host in memory. Both count failures instead of stopping at one. */
#pragma once
#include <sys/types.h>

#include "sample.h"

struct crowd_daemon {
    unsigned port;
    pid_t pid;
    const char *key, *data_dir, *run_dir;
};

struct crowd_storm {
    unsigned clients, seconds;
    struct sample life; /* create, echo, delete: one whole life */
    unsigned failures;
    unsigned left_behind;
    char first_failure[400];
    char example[400]; /* of what was left */
};
void crowd_storm(const struct crowd_daemon *d, struct crowd_storm *storm);

struct crowd_idle {
    unsigned wanted;
    unsigned alive, failures;               /* failures: of creates, execs and deletes */
    double create_s;                        /* how long making them all took */
    double pss_kb, kernel_kb, available_kb; /* growth for each sandbox; the last: cross-check */
    struct sample exec;
    char first_failure[400];
};
void crowd_idle(const struct crowd_daemon *d, struct crowd_idle *idle);
