#include "kernel/seccomp_bpf.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

/* Compare the low half of an int, as the kernel does (both architectures are little-endian).
 * libseccomp compares 64 bits, so a high bit would get past "all but this value". */
#define LOAD(member_) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member_))
#define SKIP_UNLESS(value_, n_) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value_, 0, n_)
#define SKIP_IF(value_, n_) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value_, n_, 0)
#define SKIP_UNLESS_BIT(value_, n_) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, value_, 0, n_)
#define REFUSE(errno_) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (errno_))

/* The list behind these refuses another architecture's numbers anyway. */
static const struct sock_filter rules[] = {
    LOAD(nr),
    SKIP_UNLESS(SYS_setsockopt, 8),
    LOAD(args[1]),
    SKIP_UNLESS(SOL_SOCKET, 10),
    LOAD(args[2]),
    SKIP_IF(SO_ATTACH_FILTER, 3),
    SKIP_IF(SO_ATTACH_BPF, 2),
    SKIP_IF(SO_ATTACH_REUSEPORT_CBPF, 1),
    SKIP_UNLESS(SO_ATTACH_REUSEPORT_EBPF, 5),
    REFUSE(ENOPROTOOPT),
    SKIP_UNLESS(SYS_seccomp, 3),
    LOAD(args[1]),
    SKIP_UNLESS_BIT(SECCOMP_FILTER_FLAG_NEW_LISTENER, 1),
    REFUSE(EINVAL),
};
_Static_assert(ARRAY_LEN(rules) <= SECCOMP_BPF_MAX, "they must fit");

size_t seccomp_bpf_rules(struct sock_filter out[SECCOMP_BPF_MAX])
{
    memcpy(out, rules, sizeof(rules));
    return ARRAY_LEN(rules);
}
