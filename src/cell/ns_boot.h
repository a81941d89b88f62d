/* ns_boot - the boot that a cell shows as its own: an id, and a /proc/stat that says when it was.
 *
 * The kernel has one, and whoever reads it in two cells knows that they are on one machine. So a cell has a file over it
 * that is made when it starts, and again with what it said when its processes are brought back. Each is a small file of
 * the host's; short calls. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "cell/ns.h"

#define NS_BOOT_PATH "/proc/sys/kernel/random/boot_id" /* inside */
#define NS_BOOT_DIR "boots"         /* of the shared directory: files of each cell, by its id */
#define NS_BOOT_SHOWN "boots-shown" /* the same read-only, for those that never change */
#define NS_BOOT_SIZE 37             /* 36 characters and the NUL */
#define NS_STAT_PATH "/proc/stat"   /* inside */
#define NS_STAT_SUFFIX ".stat"      /* of the file in NS_BOOT_DIR that is shown there */

bool ns_boot_valid(const char *text);
/* Writes the files of cell `id`: boot id `known` (a new one if that is ""), booted `uptime_s` ago with so many
 * processors. */
int ns_boot_put(const struct ns_host *host, const char *id, const char *known, int64_t uptime_s,
                unsigned cpus, struct err *err);
void ns_boot_drop(const struct ns_host *host, const char *id); /* it ended; NULL is fine */
