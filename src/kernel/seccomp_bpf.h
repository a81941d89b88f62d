/* seccomp_bpf - rules that keep compiled filters from descriptors.
 *
 * Compiled filters lie in a room of the kernel's that the whole machine shares and no control group
 * counts. A socket could have one, and a descriptor could hold those of a process that is gone: as many
 * as there are descriptors. So sockets get none (those that read packets or kernel events are refused
 * anyway) and filters no listener. A process may filter its own calls, as browsers do: the kernel bounds how
 * much one has, and the control group how many there are. */
#pragma once
#include <linux/filter.h>
#include <stddef.h>

#define SECCOMP_BPF_MAX 16

/* Written before the list, to which all that they do not refuse goes on. Returns how many there are. */
size_t seccomp_bpf_rules(struct sock_filter out[SECCOMP_BPF_MAX]);
