/* seccomp - which system calls a sandbox may make.
 *
 * An allow list at least as tight as the one container engines ship: what is not on it gets EPERM,
 * what programs probe for gets ENOSYS so that they fall back, and so does every call that is newer
 * than the libseccomp at hand. Compiled once by libseccomp into a
 * program that each cell installs before its first instruction of ours; it is never taken off.
 * Native calls only: another architecture's call numbers get ENOSYS. A few instructions in front of
 * it (seccomp_guard.h) keep pid 1 out of everybody's reach. */
#pragma once
#include <stdint.h>

#include "base/err.h"

struct sock_fprog;

/* clone3 takes its flags from memory, where no filter can see them, so it is refused, except to
 * whoever passes these two numbers in its unused fifth and sixth arguments: warren-init. */
struct seccomp_cookie {
    uint64_t a, b;
};

/* *ret_prog and what it points to are one allocation: free(*ret_prog). */
int seccomp_compile(const struct seccomp_cookie *cookie, struct sock_fprog **ret_prog,
                    struct err *err);
/* For the calling thread; needs CAP_SYS_ADMIN in its user namespace. 0 or -errno. */
int seccomp_install(const struct sock_fprog *prog);
