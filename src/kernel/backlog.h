/* backlog - bounds what a cell's connections hold before anybody accepts them.
 *
 * The kernel charges a TCP connection to a memory group when accept(2) returns it. Until then its data counts for nobody, so
 * a cell could fill the whole machine's room for TCP by connecting to itself and never accepting. Two BPF programs on
 * the control group of all cells count the connections that wait in each cell, refuse more than BACKLOG_CONNECTIONS of them,
 * and let each hold BACKLOG_BYTES_EACH at most. A refused packet is lost, as it is with a full backlog: the sender tries again.
 * The programs stay with the group when the keeper dies. Needs Linux 5.12 with BTF. */
#pragma once
#include "base/err.h"

/* Of all listeners of a cell. Beyond it a new connection is lost, as with a full backlog, and the client tries again. A
 * listener that ever got a connection counts as if one more were on its way. */
#define BACKLOG_CONNECTIONS 1024
/* The bytes that one waiting connection may hold, so all of a cell's hold 256 MB at most. A program reaches that only with
 * larger buffers: by default the kernel takes 128 KB and one more packet before the first read. A sender that lost a packet
 * here waits longer each time, and so does everybody behind it. */
#define BACKLOG_BYTES_EACH (256 << 10)

/* For all sockets that are made in the control group (v2) of this descriptor. Fine to call again.
 * Failure: this kernel cannot, and nothing bounds them. */
int backlog_bound(int group_fd, struct err *err);
