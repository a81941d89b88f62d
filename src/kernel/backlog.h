/* backlog - bounds what a cell's connections hold before anybody accepts them.
 *
 * The kernel charges a TCP connection to a memory group when accept(2) returns it. Until then its data counts for nobody, so
 * a cell could fill the whole machine's room for TCP by connecting to itself and never accepting. Two BPF programs on
 * the control group of all cells count the connections that wait in each cell, refuse more than BACKLOG_CONNECTIONS of them,
 * and let each hold less the more there are. A refused packet is lost, as it is with a full backlog: the sender tries again.
 * The programs stay with the group when the keeper dies. Needs Linux 5.12 with BTF. */
#pragma once
#include "base/err.h"

/* Of all listeners of a cell: as many as one may have by the kernel's default somaxconn. A listener that ever got one counts
 * as if one more were on its way. */
#define BACKLOG_CONNECTIONS 4096
/* What waiting connections of a cell share. The nth may hold an nth of it: 4,096 of them have about 140 MB at most, and each of
 * 400 all that the kernel lets a client send before the first read. A sender that had to try again for a packet waits longer
 * each time, so ordinary ones should not come to that; those with more to send than their share do, beyond 400. */
#define BACKLOG_BYTES (40 << 20)
#define BACKLOG_BYTES_EACH (128 << 10)

/* For all sockets that are made in the control group (v2) of this descriptor. Fine to call again.
 * Failure: this kernel cannot, and nothing bounds them. */
int backlog_bound(int group_fd, struct err *err);
