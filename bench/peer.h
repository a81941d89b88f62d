/* peer - another program that makes sandboxes, timed from the outside.
 *
 * A peer is a command line whose program prints one line: the clock runs from before fork to
 * that line. What the command does afterwards (its own clean-up) is waited for and not timed. */
#pragma once

#include "base/err.h"

/* stderr of the command goes to log_fd. -ETIME after a minute; -EIO where it fails. */
int peer_once(char *const argv[], int log_fd, double *ret_us, struct err *err);

/* Plain fork, exec of argv and wait: what any way to run a command has to pay. */
int peer_fork(char *const argv[], double *ret_us, struct err *err);
