/* birth - everything a new process needs before and right after its fork.
 *
 * Turns a START into pipes or a terminal, an account, an environment, a working directory and a
 * family; launches; and keeps of the request what a listing will show. */
#pragma once
#include "base/err.h"
#include "init/call.h"

struct proc;

int birth_setup(void); /* opens /dev/null while it is surely that */
/* On failure the half-made proc is the caller's to free. */
int birth(struct proc *p, const struct call *call, struct err *err);
