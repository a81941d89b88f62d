/* autosave - checkpoints that are taken by themselves, and which of them stay.
 *
 * A spec says when: at intervals, before each command, at a stop. One that would hold nothing new is
 * not taken. What stays is said by rules, any of which keeps one; they judge only what was taken by
 * itself and has no name: whatever somebody asked for is never touched. Such checkpoints go with their sandbox. The
 * first half is arithmetic; the other calls block for as long as the keeper takes. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define AUTOSAVE_KEEP_LAST 10 /* where no rule is said */
#define AUTOSAVE_MOST 1000    /* of one sandbox, whatever the rules say */

struct autosave {
    int64_t every_ms; /* 0: not at intervals */
    bool before_command, on_stop;
    uint32_t keep_last, keep_hourly, keep_daily;
    int64_t keep_ms; /* those that are younger */
};

bool autosave_any(const struct autosave *a); /* whether it says anything */
int autosave_check(const struct autosave *a, struct err *err);
json_t *autosave_to_json(const struct autosave *a); /* NULL: no memory */
void autosave_from_json(const json_t *object, struct autosave *ret_a);
/* When the next one is due after one at last_ms; 0: never. */
int64_t autosave_next(const struct autosave *a, int64_t last_ms, int64_t now_ms);
/* Which of n, the oldest first, stay. The youngest always does. */
void autosave_thin(const struct autosave *a, const int64_t *created_ms, size_t n, int64_t now_ms,
                   bool *ret_keep);
bool autosave_is(const char *reason); /* one of those that this file takes */

/* ---- autosave_take.c ---- */
struct box;
struct core;
void autosave_run(struct core *core, const char *id); /* the interval is over */
/* A command is about to start in one that the caller has entered, and that says so. */
void autosave_command(struct core *core, const char *id);
/* It has just stopped; the box is held. reason NULL: only if its spec says so. */
void autosave_stopped(struct core *core, struct box *b, const char *reason);
/* When the last one was taken; 0: there is none. */
int64_t autosave_last(struct core *core, const char *owner, const char *id);
/* The sandbox is gone. */
void autosave_drop(struct core *core, const char *owner, const char *id);
