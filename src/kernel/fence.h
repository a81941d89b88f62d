/* fence - unix sockets and named pipes do not lead from one cell to another.
 *
 * A socket in a directory that two cells see (a volume, even a read-only one) would connect them, and a connection
 * passes descriptors: one cell's way into the network, say. Two BPF programs on the kernel's own checks of a connection and of
 * a datagram let neither pass between two network namespaces, as cells are; by which path the socket was found makes no
 * difference. A third one lets no cell open a named pipe that lies on a volume: a pipe carries bytes even from a cell that
 * may only read the volume. All of them belong to the control group that all cells are in, and stay there for as long as it does: no process
 * has to live for them. What is outside that group is not asked. Needs Linux 6.0 with BTF, and "bpf" among its security
 * modules. */
#pragma once
#include "base/err.h"

/* For all sockets that are made in the control group (v2) of this descriptor. Fine to call again.
 * Failure: this kernel cannot, and sockets and pipes do lead across. */
int fence_raise(int group_fd, struct err *err);
