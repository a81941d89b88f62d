/* tcpcut - ends TCP connections whose other end is nowhere.
 *
 * In a network namespace whose processes were brought back, a connection that led out of it has only
 * one end: it would wait for ever. The kernel ends such ones, and their owners see an error. Those
 * with both ends in the namespace are left alone. A few messages to the kernel; does not block. */
#pragma once
#include "base/err.h"

/* In the caller's own network namespace. How many were ended, or -errno. */
int tcpcut_loose_ends(struct err *err);
