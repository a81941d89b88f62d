/* ns_boot - the boot id that a cell shows as its own.
 *
 * The kernel has one, and whoever reads it in two cells knows that they are on one machine. So a cell has a file over it
 * that is made when it starts, and again with what it said when its processes are brought back. Each is a small file of
 * the host's; short calls. */
#pragma once
#include <stdbool.h>

#include "cell/ns.h"

#define NS_BOOT_PATH "/proc/sys/kernel/random/boot_id" /* inside */
#define NS_BOOT_DIR "boots" /* of the furniture: a file a cell, by its id */
#define NS_BOOT_SIZE 37     /* 36 characters and the NUL */

bool ns_boot_valid(const char *text);
/* What cell `id` will show: `known`, or a new one if that is "". */
int ns_boot_put(const struct ns_host *host, const char *id, const char *known, struct err *err);
void ns_boot_drop(const struct ns_host *host, const char *id); /* it ended; NULL is fine */
