/* netlinks - bounds what a cell's netlink sockets hold.
 *
 * The kernel charges what waits in a netlink socket to nobody: a cell could ask for its routes again and again, read no
 * reply, and so fill the machine's memory. A BPF program refuses a cell more than NETLINKS_MOST such sockets (EMFILE), and another
 * keeps their buffers at the default size: a larger SO_RCVBUF or SO_SNDBUF is cut, as the kernel cuts it to net.core.rmem_max.
 * The second stays with the control group; the first ends with the process that called, and its successor counts
 * only sockets made since. Needs Linux 5.12 with BTF and security hooks; on arm64 6.4. */
#pragma once
#include "base/err.h"

/* Of a cell. What programs open to list interfaces they close at once; few keep one to hear of changes. Each holds 208 KB
 * and one more reply, where net.core.rmem_default is as usual: 125 MB together. A machine with a larger default gets fewer. */
#define NETLINKS_MOST 512
#define NETLINKS_LEAST 64
#define NETLINKS_BUFFER 212992 /* the kernel's default */

/* For the processes in the control group (v2) of this descriptor whose ids are 65,536 and above: below are the host's.
 * Failure: this kernel cannot, and nothing bounds them. */
int netlinks_bound(int group_fd, struct err *err);
