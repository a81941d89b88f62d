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

/* Needed by no process of ours. The keeper traces, mounts, loads BPF and makes namespaces, so those
 * calls are not here; its sandboxes inherit the list, so no call is here that a sandbox may make. */
static const char *const refused[] = {
    /* parts of the kernel with a history */
    "userfaultfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "perf_event_open", /* the keeper opens one before (kernel/execs.h) */
    "add_key",
    "keyctl",
    "request_key",
    "modify_ldt",
    "lookup_dcookie",
    "fanotify_init",
    "open_by_handle_at", /* any file of a file system, whatever is mounted */
    /* other processes' memory */
    "process_vm_writev",
    "kcmp",
    "move_pages",
    "migrate_pages",
    /* the machine */
    "init_module",
    "finit_module",
    "delete_module",
    "create_module",
    "query_module",
    "get_kernel_syms",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "quotactl",
    "quotactl_fd",
    "syslog",
    "iopl",
    "ioperm",
    "settimeofday",
    "stime",
    "clock_settime",
    "clock_settime64",
    "clock_adjtime",
    "clock_adjtime64",
    "adjtimex",
    "vhangup",
    "nfsservctl",
    "uselib",
    "sysfs",
    "_sysctl",
    "ustat",
};

const char *const *calls_refused(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(refused);
    return refused;
}

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

static int add_refused(scmp_filter_ctx ctx, int r)
{
    for (size_t i = 0; i < ARRAY_LEN(refused) && r >= 0; i++)
        r = add(ctx, SCMP_ACT_ERRNO(EPERM), refused[i]);
    return r;
}

int calls_refuse(const char *const *names, size_t n, struct err *err)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    int r = ctx ? add(ctx, SCMP_ACT_ERRNO(ENOSYS), "clone3") : -ENOMEM;
    r = add_refused(ctx, r);
    for (size_t i = 0; i < n && r >= 0; i++)
        r = add(ctx, SCMP_ACT_ERRNO(EPERM), names[i]);
    /* A rule holds one comparison per argument, so each bit needs a rule. */
    for (unsigned long bit = 1; bit && r >= 0; bit <<= 1)
        if (NAMESPACES & bit)
            r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                 SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
    return load(ctx, false, r, err);
}

int calls_refuse_few(struct err *err)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    int r = ctx ? seccomp_attr_set(ctx, SCMP_FLTATR_CTL_NNP, 0) : -ENOMEM;
    return load(ctx, false, add_refused(ctx, r), err);
}
