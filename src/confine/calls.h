/* calls - the system calls that a process of ours may still make.
 *
 * A list of names, installed for good, for every thread and whatever the process starts. A call that is
 * refused fails with EPERM and nobody dies: a library that asks for some comfort does without it. Names that
 * libseccomp does not know are left out. A sanitizer's build installs nothing: its run-time makes
 * calls of its own. Sets no_new_privs. */
#pragma once
#include <stddef.h>

#include "base/err.h"

/* These and no others. mmap and mprotect, if among them, make no code. */
int calls_allow(const char *const *names, size_t n, struct err *err);
/* All but these, and but new namespaces. clone3, whose flags no filter can see, gets ENOSYS: the C library
 * then uses clone. */
int calls_refuse(const char *const *names, size_t n, struct err *err);
