#include "kernel/seccomp_guard.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <linux/ioprio.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

#define INIT_PID 1
#define NO_SIGNAL (-1)

/* A call that is refused when this argument has this value. */
static const struct guard {
    uint32_t nr;
    uint8_t arg;
    uint32_t value;
    int8_t signal; /* the argument that holds a signal: signal 0 only asks whether pid 1 exists */
} guards[] = {
    { SYS_prlimit64, 0, INIT_PID, NO_SIGNAL },
    { SYS_sched_setaffinity, 0, INIT_PID, NO_SIGNAL },
    { SYS_sched_setattr, 0, INIT_PID, NO_SIGNAL },
    { SYS_sched_setparam, 0, INIT_PID, NO_SIGNAL },
    { SYS_sched_setscheduler, 0, INIT_PID, NO_SIGNAL },
    /* By process or group; and by user, since init may be among that user's processes. */
    { SYS_setpriority, 1, INIT_PID, NO_SIGNAL },
    { SYS_setpriority, 0, PRIO_USER, NO_SIGNAL },
    { SYS_ioprio_set, 1, INIT_PID, NO_SIGNAL },
    { SYS_ioprio_set, 0, IOPRIO_WHO_USER, NO_SIGNAL },
    /* Init blocks all signals, so they would pile up. */
    { SYS_kill, 0, INIT_PID, 1 },
    { SYS_tkill, 0, INIT_PID, 1 },
    { SYS_tgkill, 1, INIT_PID, 2 },
    { SYS_rt_sigqueueinfo, 0, INIT_PID, 1 },
    { SYS_rt_tgsigqueueinfo, 1, INIT_PID, 2 },
    { SYS_pidfd_open, 0, INIT_PID, NO_SIGNAL },
};

static uint32_t low_half(unsigned arg)
{
    size_t at = offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t);
    return (uint32_t)(at + (BYTE_ORDER == BIG_ENDIAN ? sizeof(uint32_t) : 0));
}

size_t seccomp_guard(struct sock_filter out[SECCOMP_GUARD_MAX])
{
    const struct sock_filter load_nr =
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    size_t n = 0;
    out[n++] = load_nr;
    for (size_t i = 0; i < ARRAY_LEN(guards); i++) {
        const struct guard *g = &guards[i];
        bool by_signal = g->signal != NO_SIGNAL;
        uint8_t rest = by_signal ? 6 : 4; /* instructions for this call alone */
        assert(n + 1 + rest < SECCOMP_GUARD_MAX);
        out[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, g->nr, 0, rest);
        if (by_signal) {
            out[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                    low_half((unsigned)g->signal));
            out[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, 0);
        }
        out[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low_half(g->arg));
        out[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, g->value, 0, 1);
        out[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                                SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA));
        out[n++] = load_nr;
    }
    return n;
}
