/* self - a descriptor of ours as a path, for the calls that take nothing else.
 *
 * That is /proc/self/fd/N, until the worker's root is some directory below: then /proc is out of
 * sight, and the way to it is the working directory, which stays there. */
#pragma once
#include <stddef.h>

#define SELF_PATH_MAX 300 /* a number and a file's name */

/* Make `root` the worker's root, for good. -errno: nothing is certain then. */
int self_root(const char *root);
/* The path of fd, or of `name` (NULL: none) in the directory fd; -ENAMETOOLONG. */
int self_path(int fd, const char *name, char out[SELF_PATH_MAX]);
