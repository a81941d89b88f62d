#include "confine/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/sanitized.h"
#include "confine/unnamed.h"

#define PROGRAM_MAX (BPF_MAXINSNS * sizeof(struct sock_filter))
#define BLOCK 4096
#define NAMESPACES                                                                                \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | \
     CLONE_NEWNET)

static bool makes_memory(const char *name)
{
    return strcmp(name, "mmap") == 0 || strcmp(name, "mprotect") == 0;
}

static int add(scmp_filter_ctx ctx, uint32_t action, const char *name)
{
    int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR)
        return 0; /* not on this architecture, or newer than libseccomp */
    if (action == SCMP_ACT_ALLOW && makes_memory(name))
        return seccomp_rule_add(ctx, action, number, 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    return seccomp_rule_add(ctx, action, number, 0);
}

#if !SANITIZED
/* Through a pipe, which holds the largest program there is: whoever calls may have no right to write a file. */
static int export(scmp_filter_ctx ctx, struct buf *out)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    int r = seccomp_export_bpf(ctx, ends[1]);
    (void)close(ends[1]);
    for (ssize_t n = 1; r >= 0 && n > 0; out->len += (size_t)n) {
        r = buf_reserve(out, BLOCK);
        n = r < 0 ? 0 : read(ends[0], out->data + out->len, BLOCK);
        if (n < 0) {
            r = -errno;
            n = 0;
        }
    }
    (void)close(ends[0]);
    return r;
}

/* The library's program behind ours. */
static int install(scmp_filter_ctx ctx)
{
    struct sock_filter first[UNNAMED_MAX];
    _cleanup_(buf_done) struct buf rules = BUF_INIT(sizeof(first) + PROGRAM_MAX + BLOCK + 1);
    int r = buf_append(&rules, first, unnamed_rules(first) * sizeof(first[0]));
    if (r >= 0)
        r = export(ctx, &rules);
    if (r < 0)
        return r;
    size_t n = rules.len / sizeof(first[0]);
    struct sock_fprog prog = { .len = (unsigned short)n, .filter = (void *)rules.data };
    if (n > BPF_MAXINSNS)
        return -E2BIG;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    long at = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog);
    return at < 0 ? -errno : at > 0 ? -ESRCH : 0; /* a thread that has filters of its own */
}
#endif

static int load(scmp_filter_ctx ctx, bool lists, int r, struct err *err)
{
    if (ctx && r >= 0)
        r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
    if (ctx && r >= 0)
        r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
    if (ctx && r >= 0) /* a binary tree: most calls are far down a list */
        r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
#if !SANITIZED
    if (ctx && r >= 0)
        r = lists ? install(ctx) : seccomp_load(ctx);
#endif
    if (ctx)
        seccomp_release(ctx);
    return r < 0 ? err_set(err, -r, "cannot filter system calls") : 0;
}

int calls_allow(const char *const *names, size_t n, struct err *err)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int r = ctx ? 0 : -ENOMEM;
    for (size_t i = 0; i < n && r >= 0; i++)
        r = add(ctx, SCMP_ACT_ALLOW, names[i]);
    return load(ctx, true, r, err);
}

int calls_refuse(const char *const *names, size_t n, struct err *err)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    int r = ctx ? add(ctx, SCMP_ACT_ERRNO(ENOSYS), "clone3") : -ENOMEM;
    for (size_t i = 0; i < n && r >= 0; i++)
        r = add(ctx, SCMP_ACT_ERRNO(EPERM), names[i]);
    /* A rule holds one comparison per argument, so each bit needs a rule. */
    for (unsigned long bit = 1; bit && r >= 0; bit <<= 1)
        if (NAMESPACES & bit)
            r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                 SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
    return load(ctx, false, r, err);
}

int calls_refuse_named(const char *const *names, size_t n, struct err *err)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    int r = ctx ? seccomp_attr_set(ctx, SCMP_FLTATR_CTL_NNP, 0) : -ENOMEM;
    for (size_t i = 0; i < n && r >= 0; i++)
        r = add(ctx, SCMP_ACT_ERRNO(EPERM), names[i]);
    return load(ctx, false, r, err);
}
