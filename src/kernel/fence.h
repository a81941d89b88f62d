/* fence - keeps unix sockets and named pipes on volumes from connecting cells.
 *
 * A socket in a directory that two cells see (a volume, even a read-only one) would connect
 * them, and a connection passes descriptors: one cell's way into the network, say. Two BPF
 * programs on the kernel's checks of a connection and of a datagram refuse both between two
 * network namespaces, by whatever path the socket was found. A third one lets no cell open a
 * named pipe on a volume: a pipe carries bytes even from a cell that may only read the volume.
 * The programs belong to the control group that all cells are in and stay as long as it does: no
 * process has to live for them. Processes outside of that group are not affected. Needs Linux
 * 6.0 with BTF, and "bpf" among its security modules. */
#pragma once
#include "base/err.h"

/* Raise the fence for the control group (v2) of this descriptor. Fine to call again. On failure
 * this kernel cannot, and sockets and pipes do connect cells. */
int fence_raise(int group_fd, struct err *err);
