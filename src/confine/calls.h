/* calls - the system calls that a process of ours may still make.
 *
 * A list of names, installed for good, for every thread and every program the process starts. A
 * refused call fails with EPERM and kills nobody: a library that asks for a comfort does without
 * it. Names that libseccomp does not know are left out. A sanitizer's build installs nothing: its
 * run-time makes calls of its own. Sets no_new_privs unless a function says otherwise. */
#pragma once
#include <stddef.h>

#include "base/err.h"

/* Allow these calls and no others; numbers that libseccomp has no name for fail with ENOSYS
 * (unnamed.h). mmap and mprotect, if listed, cannot make memory executable. */
int calls_allow(const char *const *names, size_t n, struct err *err);
/* The calls that no process of ours needs: modules, kexec, io_uring, keys, clocks and the like. */
const char *const *calls_refused(size_t *ret_n);
/* Allow all calls but those and these, and no new namespaces. clone3 hides its flags from filters
 * and gets ENOSYS, so the C library uses clone. */
int calls_refuse(const char *const *names, size_t n, struct err *err);
/* Allow all calls but calls_refused, new namespaces too, and do not set no_new_privs: for the
 * keeper, whose children are sandboxes, where setuid programs work. The filter looks at numbers
 * alone, never at arguments: every sandbox inherits it, and the kernel answers such calls from a
 * bitmap (5.11). Needs CAP_SYS_ADMIN. */
int calls_refuse_few(struct err *err);
