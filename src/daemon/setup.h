/* setup - what warrend does while it is root: its directories, its lock, and the way down.
 *
 * Directories that existed are used as they are if nobody else can write to them; they are only
 * ever opened further by the right to pass through, which the unprivileged half needs. */
#pragma once
#include <sys/types.h>

#include "base/err.h"

struct setup_user {
    uid_t uid;
    gid_t gid;
    const char *name; /* a literal or the caller's */
};

/* NULL: "warren", else "nobody". */
int setup_user(const char *name, struct setup_user *ret_user, struct err *err);
/* Make it if it is missing, and give back its real path; the caller frees. */
int setup_dir(const char *path, char **ret_real, struct err *err);
/* <data>/state and <data>/blobs, of that user alone, with whatever an earlier user left there. */
int setup_state(const char *data, const struct setup_user *user, struct err *err);
/* One daemon a run directory: the lock lasts as long as the returned descriptor. */
int setup_lock(const char *run, struct err *err);
/* Give root up for good, and make sure that it is gone. */
int setup_drop(const struct setup_user *user, struct err *err);
