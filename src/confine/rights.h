/* rights - the capabilities that a process of ours keeps. */
#pragma once
#include <stddef.h>

#include "base/err.h"

/* No program that this process runs, and nobody who comes after it, has others again. Needs CAP_SETPCAP. */
int rights_bound(const int *capabilities, size_t n, struct err *err);
/* Of those that it has now these and no others. A program that root runs has again what is in its bound,
 * unless no_new_privs is set. */
int rights_hold(const int *capabilities, size_t n, struct err *err);
