/* loop - a file as a block device.
 *
 * The device frees itself when its last user is gone, so a killed keeper leaves none behind; a
 * file that is attached already is found again, because two devices on one file would be two
 * truths. */
#pragma once
#include <stddef.h>

#include "base/err.h"

#define LOOP_PATH_SIZE 32 /* "/dev/loopN" */

/* The owner of *ret_fd keeps the device alive until something has mounted it. */
int loop_attach(const char *file, char ret_path[LOOP_PATH_SIZE], int *ret_fd, struct err *err);
