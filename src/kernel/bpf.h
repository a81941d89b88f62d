/* bpf - BPF programs of a few instructions, written by hand, and the call that loads them.
 *
 * Jumps are relative to the next instruction; the kernel's verifier is the test of what is written
 * with these. */
#pragma once
#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BPF_INSN(code_, dst_, src_, off_, imm_) \
    ((struct bpf_insn){                         \
        .code = (code_), .dst_reg = (dst_), .src_reg = (src_), .off = (off_), .imm = (imm_) })
#define BPF_MOVE(dst_, src_) BPF_INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst_, src_, 0, 0)
#define BPF_SET(dst_, imm_) BPF_INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst_, 0, 0, imm_)
#define BPF_PLUS(dst_, imm_) BPF_INSN(BPF_ALU64 | BPF_ADD | BPF_K, dst_, 0, 0, imm_)
#define BPF_PLUS_REG(dst_, src_) BPF_INSN(BPF_ALU64 | BPF_ADD | BPF_X, dst_, src_, 0, 0)
#define BPF_MASK(dst_, imm_) BPF_INSN(BPF_ALU64 | BPF_AND | BPF_K, dst_, 0, 0, imm_)
#define BPF_OR_REG(dst_, src_) BPF_INSN(BPF_ALU64 | BPF_OR | BPF_X, dst_, src_, 0, 0)
#define BPF_SHIFT_RIGHT(dst_, imm_) BPF_INSN(BPF_ALU64 | BPF_RSH | BPF_K, dst_, 0, 0, imm_)
/* size_: BPF_H, BPF_W or BPF_DW */
#define BPF_LOAD(size_, dst_, base_, off_) \
    BPF_INSN(BPF_LDX | BPF_MEM | (size_), dst_, base_, off_, 0)
#define BPF_STORE(size_, base_, off_, src_) \
    BPF_INSN(BPF_STX | BPF_MEM | (size_), base_, src_, off_, 0)
#define BPF_STORE_ZERO(base_, off_) BPF_INSN(BPF_ST | BPF_MEM | BPF_DW, base_, 0, off_, 0)
#define BPF_ADD_TO(base_, off_, src_) \
    BPF_INSN(BPF_STX | BPF_ATOMIC | BPF_DW, base_, src_, off_, BPF_ADD)
#define BPF_JUMP_EQ(dst_, imm_, to_) BPF_INSN(BPF_JMP | BPF_JEQ | BPF_K, dst_, 0, to_, imm_)
#define BPF_JUMP_NE(dst_, imm_, to_) BPF_INSN(BPF_JMP | BPF_JNE | BPF_K, dst_, 0, to_, imm_)
/* Compares the lower half: an immediate value is sign-extended where the whole register is
 * compared. */
#define BPF_JUMP32_NE(dst_, imm_, to_) BPF_INSN(BPF_JMP32 | BPF_JNE | BPF_K, dst_, 0, to_, imm_)
#define BPF_JUMP_GE(dst_, imm_, to_) BPF_INSN(BPF_JMP | BPF_JGE | BPF_K, dst_, 0, to_, imm_)
#define BPF_JUMP(to_) BPF_INSN(BPF_JMP | BPF_JA, 0, 0, to_, 0)
#define BPF_CALL_FN(fn_) BPF_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, fn_)
#define BPF_END_IT() BPF_INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* Takes the place of two instructions. */
#define BPF_LOAD_MAP(dst_, fd_) \
    BPF_INSN(BPF_LD | BPF_DW | BPF_IMM, dst_, BPF_PSEUDO_MAP_FD, 0, fd_), BPF_INSN(0, 0, 0, 0, 0)

#define BPF_ADDRESS(p_) ((uint64_t)(uintptr_t)(p_))

static inline int bpf_do(enum bpf_cmd cmd, union bpf_attr *attr)
{
    int r = (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
    return r < 0 ? -errno : r;
}

static inline int bpf_map_make(enum bpf_map_type type, size_t key, size_t value, uint32_t max,
                               uint32_t flags)
{
    union bpf_attr attr = { .map_type = type,
                            .key_size = (uint32_t)key,
                            .value_size = (uint32_t)value,
                            .max_entries = max,
                            .map_flags = flags };
    return bpf_do(BPF_MAP_CREATE, &attr);
}

/* To all that is in a control group (v2), for as long as it is there: a link would end with whoever holds it. Without a
 * flag the program takes the place of the one before it. */
static inline int bpf_attach(int group_fd, int program, enum bpf_attach_type type)
{
    union bpf_attr attr = { .target_fd = (uint32_t)group_fd,
                            .attach_bpf_fd = (uint32_t)program,
                            .attach_type = type };
    return bpf_do(BPF_PROG_ATTACH, &attr);
}
