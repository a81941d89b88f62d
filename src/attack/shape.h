/* shape - the limits of the attacked sandboxes. `warren attack` makes them with these numbers,
 * and the program inside judges by the same numbers whether a limit held. */
#pragma once

#define SHAPE_MEMORY_MB 256
#define SHAPE_DISK_MB 64
#define SHAPE_PIDS 128
#define SHAPE_VOLUME_MB 64
