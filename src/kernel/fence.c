#include "kernel/fence.h"

#include <linux/magic.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "kernel/bpf.h"
#include "kernel/btf.h"

/* Offsets in this kernel's structures. */
struct places {
    int net_of_sock; /* struct sock: its network namespace */
    int sock_of_socket;
    int inode_of_file, mode_of_inode, super_of_inode, magic_of_super;
};

static int find_places(const struct btf *btf, struct places *ret)
{
    int common = btf_offset(btf, "sock", "__sk_common");
    int net = btf_offset(btf, "sock_common", "skc_net");
    struct places p = {
        .net_of_sock = common + net,
        .sock_of_socket = btf_offset(btf, "socket", "sk"),
        .inode_of_file = btf_offset(btf, "file", "f_inode"),
        .mode_of_inode = btf_offset(btf, "inode", "i_mode"),
        .super_of_inode = btf_offset(btf, "inode", "i_sb"),
        .magic_of_super = btf_offset(btf, "super_block", "s_magic"),
    };
    if (common < 0 || net < 0 || p.sock_of_socket < 0 || p.inode_of_file < 0 ||
        p.mode_of_inode < 0 || p.super_of_inode < 0 || p.magic_of_super < 0)
        return -ENOENT;
    *ret = p;
    return 0;
}

static int load(int function, const struct bpf_insn *program, size_t n)
{
    /* The kernel loads programs for security hooks only under a licence compatible with its own. */
    union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_LSM,
                            .expected_attach_type = BPF_LSM_CGROUP,
                            .attach_btf_id = (uint32_t)function,
                            .insns = BPF_ADDRESS(program),
                            .insn_cnt = (uint32_t)n,
                            .license = BPF_ADDRESS("Dual BSD/GPL") };
    return bpf_do(BPF_PROG_LOAD, &attr);
}

/* The programs return 1 to allow and 0 for EPERM.
 *
 * The first two arguments are the sender and the receiver: struct sock, or struct socket that
 * leads to one. */
static int load_sockets(int function, const struct places *p, bool by_socket)
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
    return load(function, program, ARRAY_LEN(program));
}

static int load_connect(int function, const struct places *p)
{
    return load_sockets(function, p, false);
}

static int load_send(int function, const struct places *p)
{
    return load_sockets(function, p, true);
}

/* The argument is the struct file being opened. Volumes are on btrfs; a cell's root is an
 * overlay, whose pipes are the cell's own. */
static int load_open(int function, const struct places *p)
{
    const struct bpf_insn program[] = {
        BPF_LOAD(BPF_DW, BPF_REG_2, BPF_REG_1, 0),
        BPF_LOAD(BPF_DW, BPF_REG_2, BPF_REG_2, (int16_t)p->inode_of_file),
        BPF_LOAD(BPF_H, BPF_REG_3, BPF_REG_2, (int16_t)p->mode_of_inode),
        BPF_SET(BPF_REG_0, 1),
        BPF_MASK(BPF_REG_3, S_IFMT),
        BPF_JUMP_NE(BPF_REG_3, S_IFIFO, 4),
        BPF_LOAD(BPF_DW, BPF_REG_2, BPF_REG_2, (int16_t)p->super_of_inode),
        BPF_LOAD(BPF_DW, BPF_REG_2, BPF_REG_2, (int16_t)p->magic_of_super),
        BPF_JUMP32_NE(BPF_REG_2, (int32_t)BTRFS_SUPER_MAGIC, 1),
        BPF_SET(BPF_REG_0, 0),
        BPF_END_IT(),
    };
    return load(function, program, ARRAY_LEN(program));
}

static const struct hook {
    const char *function;
    int (*load)(int function, const struct places *p);
} hooks[] = {
    { "bpf_lsm_unix_stream_connect", load_connect },
    { "bpf_lsm_unix_may_send", load_send },
    { "bpf_lsm_file_open", load_open },
};

static int raise_one(int group_fd, const struct btf *btf, const struct places *p,
                     const struct hook *hook, struct err *err)
{
    int function = btf_function(btf, hook->function);
    if (function < 0)
        return err_set(err, ENOSYS, "the kernel has no '%s'", hook->function);
    _cleanup_fd_ int program = hook->load(function, p);
    if (program < 0)
        return err_set(err, -program, "cannot load a BPF program for '%s'", hook->function);
    int r = bpf_attach(group_fd, program, BPF_LSM_CGROUP);
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
        return err_set(err, ENOSYS, "the kernel's sockets and files are not as they should be");
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(hooks); i++)
        r = raise_one(group_fd, btf, &p, &hooks[i], err);
    return r;
}
