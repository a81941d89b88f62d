/* seccomp_bpf - rules that keep compiled filters from being held by descriptors.
 *
 * Compiled filters take room in the kernel that the whole machine shares and no control group
 * counts. A socket could hold one, and a descriptor could keep those of a process that is gone:
 * as many as there are descriptors. So sockets get no filters (those that read packets or kernel
 * events are refused anyway) and filters no listener. A process may filter its own calls, as
 * browsers do: the kernel bounds how much one has, and the control group how many processes
 * there are. */
#pragma once
#include <linux/filter.h>
#include <stddef.h>

#define SECCOMP_BPF_MAX 16

/* Instructions to go before the list, to which they pass on all that they do not refuse. Returns
 * how many there are. */
size_t seccomp_bpf_rules(struct sock_filter out[SECCOMP_BPF_MAX]);
