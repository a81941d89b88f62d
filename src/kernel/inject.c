#include "kernel/inject.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define SYSCALL_STOP (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */
#define LOOK_NS 50000 /* no descriptor tells of a stop: it is looked for this often */

struct call {
    long nr, args[3];
};

#if defined(__x86_64__)
typedef struct user_regs_struct registers;

static int put_call(pid_t pid, registers r, const struct call *c)
{
    struct iovec v = { &r, sizeof(r) };
    r.orig_rax = (unsigned long long)c->nr;
    r.rdi = (unsigned long long)c->args[0];
    r.rsi = (unsigned long long)c->args[1];
    r.rdx = (unsigned long long)c->args[2];
    return ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &v) < 0 ? -errno : 0;
}

/* Step back before the instruction, with the registers it was called with. */
static int put_back(pid_t pid, registers r)
{
    struct iovec v = { &r, sizeof(r) };
    r.rax = r.orig_rax;
    r.orig_rax = ~0ull; /* not in a call, so that the kernel restarts none */
    r.rip -= 2;
    return ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &v) < 0 ? -errno : 0;
}
#elif defined(__aarch64__)
typedef struct user_regs_struct registers;

static int put_number(pid_t pid, int nr)
{
    struct iovec v = { &nr, sizeof(nr) };
    return ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &v) < 0 ? -errno : 0;
}

static int put_call(pid_t pid, registers r, const struct call *c)
{
    struct iovec v = { &r, sizeof(r) };
    for (int i = 0; i < 3; i++)
        r.regs[i] = (unsigned long long)c->args[i];
    r.regs[8] = (unsigned long long)c->nr;
    int e = ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &v) < 0 ? -errno : 0;
    return e < 0 ? e : put_number(pid, (int)c->nr);
}

static int put_back(pid_t pid, registers r)
{
    struct iovec v = { &r, sizeof(r) };
    r.pc -= 4;
    int e = ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &v) < 0 ? -errno : 0;
    return e < 0 ? e : put_number(pid, -1);
}
#else
#define UNKNOWN_PROCESSOR 1
#endif

#ifndef UNKNOWN_PROCESSOR
/* Until it stops. -ETIMEDOUT; -ESRCH when it ended. */
static int wait_stop(pid_t pid, int64_t until_ms, int *ret_status)
{
    for (;;) {
        pid_t got = waitpid(pid, ret_status, __WALL | WNOHANG);
        if (got == pid)
            return WIFSTOPPED(*ret_status) ? 0 : -ESRCH;
        if (got < 0 && errno != EINTR)
            return -errno;
        if (clock_mono_ms() >= until_ms)
            return -ETIMEDOUT;
        (void)nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
    }
}

/* Continue to the next stop at a system call, entry or exit; pass signals on meanwhile. */
static int next_stop(pid_t pid, int64_t until_ms, unsigned char op,
                     struct __ptrace_syscall_info *ret_info)
{
    for (int pass = 0;;) {
        int status;
        if (ptrace(PTRACE_SYSCALL, pid, NULL, pass) < 0)
            return -errno;
        int r = wait_stop(pid, until_ms, &status);
        if (r < 0)
            return r;
        pass = status >> 16 ? 0 : WSTOPSIG(status); /* an event is no signal */
        if (pass != SYSCALL_STOP)
            continue;
        pass = 0;
        if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(*ret_info), ret_info) < 0)
            return -errno;
        if (ret_info->op == op)
            return 0;
    }
}

static int inject(pid_t pid, int64_t until_ms, const struct call *c)
{
    struct __ptrace_syscall_info info;
    registers own;
    struct iovec v = { &own, sizeof(own) };
    int r = next_stop(pid, until_ms, PTRACE_SYSCALL_INFO_ENTRY, &info);
    if (r == 0 && ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &v) < 0)
        r = -errno;
    if (r == 0)
        r = put_call(pid, own, c);
    if (r == 0)
        r = next_stop(pid, until_ms, PTRACE_SYSCALL_INFO_EXIT, &info);
    int result = r == 0 && info.exit.is_error ? (int)info.exit.rval : 0;
    if (r == 0)
        r = put_back(pid, own);
    return r < 0 ? r : result;
}

static int seize(pid_t pid, int64_t until_ms)
{
    int status;
    if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACESYSGOOD) < 0 ||
        ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
        return -errno;
    return wait_stop(pid, until_ms, &status);
}

int inject_euid(pid_t pid, uint32_t euid, struct err *err)
{
    const struct call calls[] = {
        { SYS_setresuid, { -1, (long)euid, -1 } },
        { SYS_setfsuid, { 0, 0, 0 } }, /* it followed the effective id */
    };
    int64_t until_ms = clock_mono_ms() + INJECT_MS;
    int r = seize(pid, until_ms);
    for (size_t i = 0; r >= 0 && i < ARRAY_LEN(calls); i++)
        r = inject(pid, until_ms, &calls[i]);
    /* Only a stopped process can be let go, and nobody knows as which user this one would go on. */
    if (r == -ETIMEDOUT) {
        (void)kill(pid, SIGKILL);
        return err_set(err, ETIMEDOUT, "process %d made no system call within %d s and was killed",
                       (int)pid, INJECT_MS / 1000);
    }
    (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
    return r < 0 ? err_set(err, -r, "cannot make process %d act as another user", (int)pid) : 0;
}
#else
int inject_euid(pid_t pid, uint32_t euid, struct err *err)
{
    return err_set(err, ENOSYS, "this is not written for this machine's processor");
}
#endif
