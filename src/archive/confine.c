#include "archive/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/sanitized.h"
#include "confine/calls.h"

#define MEMORY_MAX (768u * 1024 * 1024) /* the widest window zstd may ask for, several times */
#define FILES_MAX 12                    /* what is open when we start, and two for the filter */

/* Memory, never code. */
static const char *const allowed[] = {
    "read",      "write",           "readv",         "writev",       "recvfrom", "recvmsg",
    "sendto",    "sendmsg",         "poll",          "ppoll",        "close",    "brk",
    "mmap",      "mprotect",        "munmap",        "mremap",       "madvise",  "fstat",
    "futex",     "rt_sigreturn",    "clock_gettime", "gettimeofday", "exit",     "exit_group",
    "getrandom", "restart_syscall",
};

static int limit(int what, rlim_t value)
{
    struct rlimit l = { value, value };
    return setrlimit((__rlimit_resource_t)what, &l) < 0 ? -errno : 0;
}

int confine(struct err *err)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set(err, errno, "cannot set no_new_privs");
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    int r = limit(RLIMIT_CORE, 0);
    if (r >= 0)
        r = limit(RLIMIT_FSIZE, 0);
#if !SANITIZED
    if (r >= 0)
        r = limit(RLIMIT_NOFILE, FILES_MAX);
    if (r >= 0)
        r = limit(RLIMIT_AS, MEMORY_MAX);
#endif
    if (r < 0)
        return err_set(err, -r, "cannot give up what is not needed");
    return calls_allow(allowed, ARRAY_LEN(allowed), err);
}
