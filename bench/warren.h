/* warren - what a client does, timed: make a sandbox, run a command, delete it.
 *
 * Each call is the plain API of docs/api.md over a connection the caller holds. An answer other
 * than the expected one is a failure with the daemon's own words. */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/id.h"
#include "http.h"

int warren_create(struct http *h, char ret_id[ID_SIZE], struct err *err);
int warren_delete(struct http *h, const char *id, struct err *err);

/* Runs echo. *ret_us: when its output had reached us, on now_us's clock. */
int warren_echo(struct http *h, const char *id, bool stream, double *ret_us, struct err *err);
int warren_true(struct http *h, const char *id, struct err *err);

/* From the first byte of the create request to the first byte of output; not timed: delete. */
int warren_once(struct http *h, bool stream, double *ret_us, struct err *err);

/* Blank sandboxes ready right now, or -ENOENT where the daemon does not say. */
int warren_pool_ready(struct http *h, struct err *err);
