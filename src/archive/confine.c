#include "archive/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/sanitized.h"

#define MEMORY_MAX (768u * 1024 * 1024) /* the widest window zstd may ask for, several times */
#define FILES_MAX 8                     /* what is open when we start, and the loader's one */

#if !SANITIZED
static const int allowed[] = {
    SCMP_SYS(read),     SCMP_SYS(write),        SCMP_SYS(readv),         SCMP_SYS(writev),
    SCMP_SYS(recvfrom), SCMP_SYS(recvmsg),      SCMP_SYS(sendto),        SCMP_SYS(sendmsg),
    SCMP_SYS(poll),     SCMP_SYS(ppoll),        SCMP_SYS(close),         SCMP_SYS(brk),
    SCMP_SYS(munmap),   SCMP_SYS(mremap),       SCMP_SYS(madvise),       SCMP_SYS(fstat),
    SCMP_SYS(futex),    SCMP_SYS(rt_sigreturn), SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday),
    SCMP_SYS(exit),     SCMP_SYS(exit_group),   SCMP_SYS(getrandom),     SCMP_SYS(restart_syscall),
};

static int filter(void)
{
    /* A refusal rather than a kill: libraries ask for small comforts and live without them. */
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!ctx)
        return -ENOMEM;
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(allowed) && r >= 0; i++)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
    /* Memory, never code. */
    if (r >= 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                             SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    if (r >= 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                             SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    if (r >= 0)
        r = seccomp_load(ctx);
    seccomp_release(ctx);
    return r;
}
#endif

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
    if (r >= 0)
        r = filter();
#endif
    return r < 0 ? err_set(err, -r, "cannot give up what is not needed") : 0;
}
