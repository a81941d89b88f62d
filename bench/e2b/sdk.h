/* sdk - E2B's own client as a contender: sdk.mjs under node, asked by lines.
 *
 * A line says what to do (`life`, `code`, `burst CLIENTS LIVES`); the answer is a line of
 * microseconds, or `error` and why. node measures by its own clock, so that the pipe and its
 * start are not in the figure. Blocks, with a limit on every wait. */
#pragma once
#include <stdio.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "life.h"

struct sdk;

/* Starts it. `argv` is borrowed until the return; what it complains of goes to log_fd. */
int sdk_new(char *const argv[], int log_fd, struct sdk **ret_sdk, struct err *err);
void sdk_free(struct sdk *s);
DEFINE_FREEP(struct sdk *, sdk_free)

/* `what` is "life" (create, run true, kill) or "code" (create to the first result of a cell). */
int sdk_once(struct sdk *s, const char *what, double *ret_us, struct err *err);
void sdk_burst(struct sdk *s, struct e2b_burst *burst);
