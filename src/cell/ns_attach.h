/* ns_attach - one more mount in a cell that runs.
 *
 * The caller forks for it: the process goes into the cell for good and ends there. It has the
 * rights of root inside and no more, so a path that leads astray leads nowhere that the cell could not
 * go by itself. Path lookups may wait for the cell's filesystem. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* A directory as a detached mount, shown with the ids of the cell whose init is `pid`. */
int ns_attach_prepare(pid_t pid, int dir_fd, bool read_only, int *ret_mount_fd, struct err *err);
/* The same for a cell that has no init yet, only a user namespace with its ids. */
int ns_attach_show(int userns_fd, int dir_fd, bool read_only, int *ret_mount_fd, struct err *err);
/* In a process of its own, single-threaded: enter the cell, make the directory `path` if it is
 * missing and put the mount over it. What is there already is left alone. */
int ns_attach(int pidfd, int mount_fd, const char *path, struct err *err);
