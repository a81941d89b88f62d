/* ns_cpus - the processors that a cell sees.
 *
 * A limit of processor time is no number of processors to the kernel: it shows every cell all of the host's, and programs
 * start as many threads, which then wait for each other. So a cell sees as many as its limit would keep busy: in
 * /proc/cpuinfo, /proc/stat and the file below /sys that says which are online. Its threads may still run on any of
 * the host's, and sched_getaffinity(2) says so. */
#pragma once
#include <stdint.h>

#include "base/buf.h"

#define NS_CPUINFO_PATH "/proc/cpuinfo" /* inside */
#define NS_ONLINE_PATH "/sys/devices/system/cpu/online"

/* 8,192, the most that Linux is built for, 2 KiB each in /proc/cpuinfo. */
#define NS_CPUS_TEXT_MAX (16u * 1024 * 1024)

/* How many are shown at a limit in thousandths of one; 0 is no limit: all of the host's. */
unsigned ns_cpus_shown(uint32_t cpu_millis);

/* The contents of the three, for `cpus` processors: 0, or -errno. */
int ns_cpus_print_info(unsigned cpus, struct buf *b);
int ns_cpus_print_online(unsigned cpus, struct buf *b);
/* Of /proc/stat all but the number of processors and the time of the boot is zero: the kernel counts there what the
 * whole machine does. */
int ns_cpus_print_stat(unsigned cpus, long long booted_s, struct buf *b);
