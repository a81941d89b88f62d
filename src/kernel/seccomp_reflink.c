#include "kernel/seccomp_reflink.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "kernel/seccomp.h"

#define LOAD(member_) \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, member_))
#define JUMP_IF(value_, then_, else_) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value_, then_, else_)

/* Another architecture's call numbers are the first filter's to refuse. */
static struct sock_filter rules[] = {
    LOAD(nr),
    JUMP_IF(SYS_copy_file_range, 7, 0),
    JUMP_IF(SYS_ioctl, 0, 4),
    LOAD(args[1]),
    JUMP_IF(FICLONE, 3, 0),
    JUMP_IF(FICLONERANGE, 2, 0),
    JUMP_IF(FIDEDUPERANGE, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
};

int seccomp_refuse_reflinks(void)
{
    const struct sock_fprog program = { ARRAY_LEN(rules), rules };
    return seccomp_install(&program);
}
