#include "kernel/fence.h"

#include <stdbool.h>

#include "base/cleanup.h"
#include "kernel/bpf.h"
#include "kernel/btf.h"

/* Where things lie in this kernel. */
struct places {
    int net_of_sock; /* struct sock: its network namespace */
    int sock_of_socket;
};

static int find_places(const struct btf *btf, struct places *ret)
{
    int common = btf_offset(btf, "sock", "__sk_common");
    int net = btf_offset(btf, "sock_common", "skc_net");
    int sock = btf_offset(btf, "socket", "sk");
    if (common < 0 || net < 0 || sock < 0)
        return -ENOENT;
    *ret = (struct places){ common + net, sock };
    return 0;
}

/* The first two arguments are who connects or sends, and who is to receive: struct sock, or struct socket that
 * leads to one. 1 lets it be, 0 is EPERM. */
static int load(int function, const struct places *p, bool by_socket)
{
    int sk = p->sock_of_socket, net = p->net_of_sock;
    const struct bpf_insn nothing = BPF_JUMP(0);
    const struct bpf_insn program[] = {
        BPF_LOAD(BPF_DW, BPF_REG_2, BPF_REG_1, 0),
        BPF_LOAD(BPF_DW, BPF_REG_3, BPF_REG_1, 8),
        by_socket ? BPF_LOAD(BPF_DW, BPF_REG_2, BPF_REG_2, (int16_t)sk) : nothing,
        by_socket ? BPF_LOAD(BPF_DW, BPF_REG_3, BPF_REG_3, (int16_t)sk) : nothing,
        BPF_LOAD(BPF_DW, BPF_REG_2, BPF_REG_2, (int16_t)net),
        BPF_LOAD(BPF_DW, BPF_REG_3, BPF_REG_3, (int16_t)net),
        BPF_SET(BPF_REG_0, 1),
        BPF_INSN(BPF_JMP | BPF_JEQ | BPF_X, BPF_REG_2, BPF_REG_3, 1, 0),
        BPF_SET(BPF_REG_0, 0),
        BPF_END_IT(),
    };
    /* Security hooks are for programs whose licence the kernel knows to be its own: these instructions may be used under
     * either. */
    union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_LSM,
                            .expected_attach_type = BPF_LSM_CGROUP,
                            .attach_btf_id = (uint32_t)function,
                            .insns = BPF_ADDRESS(program),
                            .insn_cnt = ARRAY_LEN(program),
                            .license = BPF_ADDRESS("Dual BSD/GPL") };
    return bpf_do(BPF_PROG_LOAD, &attr);
}

/* Not a link, which would end with whoever holds it. Without a flag it takes the place of the one that is there. */
static int attach(int group_fd, int program)
{
    union bpf_attr attr = { .target_fd = (uint32_t)group_fd,
                            .attach_bpf_fd = (uint32_t)program,
                            .attach_type = BPF_LSM_CGROUP };
    return bpf_do(BPF_PROG_ATTACH, &attr);
}

static const struct hook {
    const char *function;
    bool by_socket;
} hooks[] = {
    { "bpf_lsm_unix_stream_connect", false },
    { "bpf_lsm_unix_may_send", true },
};

static int raise_one(int group_fd, const struct btf *btf, const struct places *p,
                     const struct hook *hook, struct err *err)
{
    int function = btf_function(btf, hook->function);
    if (function < 0)
        return err_set(err, ENOSYS, "the kernel has no '%s'", hook->function);
    _cleanup_fd_ int program = load(function, p, hook->by_socket);
    if (program < 0)
        return err_set(err, -program, "cannot load a BPF program for '%s'", hook->function);
    int r = attach(group_fd, program);
    return r < 0 ? err_set(err, -r, "cannot attach a BPF program to '%s'", hook->function) : 0;
}

int fence_raise(int group_fd, struct err *err)
{
    _cleanup_(btf_freep) struct btf *btf = NULL;
    struct places p;
    int r = btf_open(BTF_OF_KERNEL, &btf, err);
    if (r < 0)
        return r;
    if (find_places(btf, &p) < 0)
        return err_set(err, ENOSYS, "the kernel's sockets are not as they should be");
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(hooks); i++)
        r = raise_one(group_fd, btf, &p, &hooks[i], err);
    return r;
}
