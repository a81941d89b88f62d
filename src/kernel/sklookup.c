#include "kernel/sklookup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define SLOT_TCP 0
#define SLOT_UDP 1
#define SLOTS 2
#define DNS_PORT 53

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
    int r = (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
    return r < 0 ? -errno : r;
}

static int make_map(void)
{
    union bpf_attr attr = { .map_type = BPF_MAP_TYPE_SOCKMAP,
                            .key_size = sizeof(uint32_t),
                            .value_size = sizeof(uint64_t),
                            .max_entries = SLOTS };
    return bpf(BPF_MAP_CREATE, &attr);
}

static int put_socket(int map, uint32_t slot, int fd)
{
    uint64_t value = (uint64_t)fd;
    union bpf_attr attr = { .map_fd = (uint32_t)map,
                            .key = (uint64_t)(uintptr_t)&slot,
                            .value = (uint64_t)(uintptr_t)&value,
                            .flags = BPF_ANY };
    return bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

/* ---- the program ---- */

/* Instructions by what they do. Jumps are relative to the next one; each label below is where the
 * comments say it is, and the kernel's verifier is the test. */
#define INSN(code_, dst_, src_, off_, imm_) \
    ((struct bpf_insn){                     \
        .code = (code_), .dst_reg = (dst_), .src_reg = (src_), .off = (off_), .imm = (imm_) })
#define MOV_REG(dst_, src_) INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst_, src_, 0, 0)
#define MOV(dst_, imm_) INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst_, 0, 0, imm_)
#define ADD(dst_, imm_) INSN(BPF_ALU64 | BPF_ADD | BPF_K, dst_, 0, 0, imm_)
#define AND(dst_, imm_) INSN(BPF_ALU64 | BPF_AND | BPF_K, dst_, 0, 0, imm_)
#define OR_REG(dst_, src_) INSN(BPF_ALU64 | BPF_OR | BPF_X, dst_, src_, 0, 0)
#define LOAD(dst_, field_) \
    INSN(BPF_LDX | BPF_MEM | BPF_W, dst_, BPF_REG_6, offsetof(struct bpf_sk_lookup, field_), 0)
#define STORE(base_, off_, src_) INSN(BPF_STX | BPF_MEM | BPF_W, base_, src_, off_, 0)
#define JUMP_EQ(dst_, imm_, to_) INSN(BPF_JMP | BPF_JEQ | BPF_K, dst_, 0, to_, imm_)
#define JUMP_NE(dst_, imm_, to_) INSN(BPF_JMP | BPF_JNE | BPF_K, dst_, 0, to_, imm_)
#define JUMP(to_) INSN(BPF_JMP | BPF_JA, 0, 0, to_, 0)
#define CALL(fn_) INSN(BPF_JMP | BPF_CALL, 0, 0, 0, fn_)
#define EXIT() INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static int load(int map, bool all_udp)
{
    const struct bpf_insn program[] = {
        /*  0 */ MOV_REG(BPF_REG_6, BPF_REG_1),
        /*  1 */ LOAD(BPF_REG_2, family),
        /*  2 */ JUMP_NE(BPF_REG_2, AF_INET, 4), /* to 7 */
        /*  3 */ LOAD(BPF_REG_2, local_ip4),     /* as it is on the wire */
        /*  4 */ AND(BPF_REG_2, (int32_t)htonl(0xff000000u)),
        /*  5 */ JUMP_EQ(BPF_REG_2, (int32_t)htonl(0x7f000000u), 29), /* 127.0.0.0/8: to 35 */
        /*  6 */ JUMP(8),                                             /* to 15 */
        /*  7 */ LOAD(BPF_REG_2, local_ip6[0]),
        /*  8 */ LOAD(BPF_REG_3, local_ip6[1]),
        /*  9 */ OR_REG(BPF_REG_2, BPF_REG_3),
        /* 10 */ LOAD(BPF_REG_3, local_ip6[2]),
        /* 11 */ OR_REG(BPF_REG_2, BPF_REG_3),
        /* 12 */ JUMP_NE(BPF_REG_2, 0, 2), /* to 15 */
        /* 13 */ LOAD(BPF_REG_3, local_ip6[3]),
        /* 14 */ INSN(BPF_JMP32 | BPF_JEQ | BPF_K, BPF_REG_3, 0, 20, (int32_t)htonl(1)), /* ::1 */
        /* 15 */ MOV(BPF_REG_7, SLOT_TCP),
        /* 16 */ LOAD(BPF_REG_2, protocol),
        /* 17 */ JUMP_EQ(BPF_REG_2, IPPROTO_TCP, 3), /* to 21 */
        /* 18 */ MOV(BPF_REG_7, SLOT_UDP),
        /* 19 */ LOAD(BPF_REG_2, local_port),
        /* 20 */ all_udp ? JUMP(0) : JUMP_NE(BPF_REG_2, DNS_PORT, 14), /* to 35 */
        /* 21 */ STORE(BPF_REG_10, -4, BPF_REG_7),
        /* 22 */ INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),
        /* 23 */ INSN(0, 0, 0, 0, 0), /* the second half of it */
        /* 24 */ MOV_REG(BPF_REG_2, BPF_REG_10),
        /* 25 */ ADD(BPF_REG_2, -4),
        /* 26 */ CALL(BPF_FUNC_map_lookup_elem),
        /* 27 */ JUMP_EQ(BPF_REG_0, 0, 7), /* to 35 */
        /* 28 */ MOV_REG(BPF_REG_7, BPF_REG_0),
        /* 29 */ MOV_REG(BPF_REG_1, BPF_REG_6),
        /* 30 */ MOV_REG(BPF_REG_2, BPF_REG_7),
        /* 31 */ MOV(BPF_REG_3, BPF_SK_LOOKUP_F_NO_REUSEPORT), /* this one, not its group */
        /* 32 */ CALL(BPF_FUNC_sk_assign),
        /* 33 */ MOV_REG(BPF_REG_1, BPF_REG_7),
        /* 34 */ CALL(BPF_FUNC_sk_release),
        /* 35 */ MOV(BPF_REG_0, SK_PASS),
        /* 36 */ EXIT(),
    };
    union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_SK_LOOKUP,
                            .expected_attach_type = BPF_SK_LOOKUP,
                            .insns = (uint64_t)(uintptr_t)program,
                            .insn_cnt = ARRAY_LEN(program),
                            .license = (uint64_t)(uintptr_t) "Apache-2.0" };
    return bpf(BPF_PROG_LOAD, &attr);
}

int sklookup_attach(int tcp_fd, int udp_fd, bool all_udp, int *ret_link, struct err *err)
{
    _cleanup_fd_ int map = make_map();
    if (map < 0)
        return err_set(err, -map, "cannot make a BPF map of sockets");
    int r = put_socket(map, SLOT_TCP, tcp_fd);
    if (r == 0)
        r = put_socket(map, SLOT_UDP, udp_fd);
    if (r < 0)
        return err_set(err, -r, "cannot put a socket into a BPF map");
    _cleanup_fd_ int program = load(map, all_udp);
    if (program < 0)
        return err_set(err, -program, "cannot load the BPF program");
    _cleanup_fd_ int ns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (ns < 0)
        return err_set(err, errno, "cannot open the network namespace");
    union bpf_attr attr = { .link_create = { .prog_fd = (uint32_t)program,
                                             .target_fd = (uint32_t)ns,
                                             .attach_type = BPF_SK_LOOKUP } };
    r = bpf(BPF_LINK_CREATE, &attr);
    if (r < 0)
        return err_set(err, -r, "cannot attach the BPF program");
    *ret_link = r;
    return 0;
}
