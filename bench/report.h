/* report - what was measured, as a table for people and as JSON for programs.
 *
 * Knows the targets and judges by ratios of medians taken in the same run: a slow or noisy
 * machine slows both sides of a ratio. Measures nothing itself. */
#pragma once
#include <stdbool.h>
#include <stdio.h>

#include "crowd.h"
#include "e2b/life.h"
#include "pace.h"
#include "sample.h"

enum row_id {
    ROW_FORK,
    ROW_FLOOR,
    ROW_COLD,
    ROW_COLD_ANSWER,
    ROW_WARM,
    ROW_WARM_ANSWER,
    ROW_EXEC,
    ROW_BWRAP,
    ROW_RUNC,
    ROW_DOCKER,
    ROW_E2B_FLOOR,
    ROW_E2B_RAW,
    ROW_E2B_SDK,
    ROW_E2B_CODE,
    ROW_COUNT
};

enum burst_id { BURST_RAW_10, BURST_RAW_100, BURST_SDK_10, BURST_SDK_100, BURST_COUNT };

struct row {
    const char *name, *title;
    struct sample times; /* sorted */
    char skipped[400];   /* why there are none; empty: there are, or it was not asked for */
};

struct report {
    struct row rows[ROW_COUNT];
    struct crowd_storm storm;             /* clients 0: not run */
    struct crowd_idle idle;               /* wanted 0: not run */
    struct pace pace;                     /* clients 0: not run */
    struct many many;                     /* lives 0: not run */
    struct e2b_burst bursts[BURST_COUNT]; /* clients 0: not run */
    char host[160];
    double load_before, load_after;
};

void report_table(const struct report *r, FILE *out);
int report_json(const struct report *r, const char *path); /* -errno */
