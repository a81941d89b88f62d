/* hoard - ends a cell whose netlink sockets hold too much, where the kernel cannot refuse them.
 *
 * For kernels on which kernel/netlinks.h cannot count sockets. Ten times a second one number of /proc/meminfo tells whether
 * the kernel's own memory has grown; only then are the cells looked at, each by its list of netlink sockets. Between two looks
 * a cell can take what its cpus fill in that time: 100 to 300 MB each. Lives as long as the keeper. */
#pragma once

struct keeper;
struct err;

int hoard_watch(struct keeper *k, struct err *err);
