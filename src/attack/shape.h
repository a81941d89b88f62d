/* shape - the limits of the sandboxes that are attacked. `warren attack` makes them so, and the
 * program inside judges by the same numbers whether a limit held. */
#pragma once

#define SHAPE_MEMORY_MB 256
#define SHAPE_DISK_MB 64
#define SHAPE_PIDS 128
#define SHAPE_VOLUME_MB 64
