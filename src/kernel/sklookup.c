#include "kernel/sklookup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/bpf.h"
#include "kernel/rtnl.h"

#define SLOT_TCP 0
#define SLOT_UDP 1
#define SLOT_REST 2
#define SLOTS 3
#define DNS_PORT 53

static int make_map(void)
{
    union bpf_attr attr = { .map_type = BPF_MAP_TYPE_SOCKMAP,
                            .key_size = sizeof(uint32_t),
                            .value_size = sizeof(uint64_t),
                            .max_entries = SLOTS };
    return bpf_do(BPF_MAP_CREATE, &attr);
}

static int put_socket(int map, uint32_t slot, int fd)
{
    uint64_t value = (uint64_t)fd;
    union bpf_attr attr = { .map_fd = (uint32_t)map,
                            .key = BPF_ADDRESS(&slot),
                            .value = BPF_ADDRESS(&value),
                            .flags = BPF_ANY };
    return bpf_do(BPF_MAP_UPDATE_ELEM, &attr);
}

/* ---- the program ---- */

#define FIELD(dst_, field_) BPF_LOAD(BPF_W, dst_, BPF_REG_6, offsetof(struct bpf_sk_lookup, field_))

#define JUMP32(how_, reg_, value_, to_) \
    BPF_INSN(BPF_JMP32 | (how_) | BPF_K, reg_, 0, to_, (int32_t)(value_))

/* What goes to the namespace's own address, or comes back to it, is for whoever is bound there: programs find that
 * address and tell it each other. Each label below is where the comments say it is. */
static int load(int map)
{
    uint32_t own4, own6[4];
    if (inet_pton(AF_INET, RTNL_HERE_V4, &own4) != 1 ||
        inet_pton(AF_INET6, RTNL_HERE_V6, own6) != 1)
        return -EINVAL;
    const struct bpf_insn program[] = {
        /*  0 */ BPF_MOVE(BPF_REG_6, BPF_REG_1),
        /*  1 */ FIELD(BPF_REG_2, family),
        /*  2 */ BPF_JUMP_NE(BPF_REG_2, AF_INET, 4), /* to 7 */
        /*  3 */ FIELD(BPF_REG_2, local_ip4),        /* as it is on the wire */
        /*  4 */ BPF_MASK(BPF_REG_2, (int32_t)htonl(0xff000000u)),
        /*  5 */ BPF_JUMP_EQ(BPF_REG_2, (int32_t)htonl(0x7f000000u), 39), /* 127.0.0.0/8: to 45 */
        /*  6 */ BPF_JUMP(8),                                             /* to 15 */
        /*  7 */ FIELD(BPF_REG_2, local_ip6[0]),
        /*  8 */ FIELD(BPF_REG_3, local_ip6[1]),
        /*  9 */ BPF_OR_REG(BPF_REG_2, BPF_REG_3),
        /* 10 */ FIELD(BPF_REG_3, local_ip6[2]),
        /* 11 */ BPF_OR_REG(BPF_REG_2, BPF_REG_3),
        /* 12 */ BPF_JUMP_NE(BPF_REG_2, 0, 2), /* to 15 */
        /* 13 */ FIELD(BPF_REG_3, local_ip6[3]),
        /* 14 */
        JUMP32(BPF_JEQ, BPF_REG_3, htonl(1), 30), /* ::1: to 45 */
        /* 15 */ FIELD(BPF_REG_3, local_port),
        /* 16 */ BPF_JUMP_EQ(BPF_REG_3, DNS_PORT, 8), /* to 25 */
        /* 17 */ FIELD(BPF_REG_2, local_ip4),
        /* 18 */ JUMP32(BPF_JEQ, BPF_REG_2, own4, 26), /* to 45 */
        /* 19 */ FIELD(BPF_REG_2, local_ip6[0]),
        /* 20 */ JUMP32(BPF_JNE, BPF_REG_2, own6[0], 4), /* to 25 */
        /* 21 */ FIELD(BPF_REG_2, local_ip6[1]),
        /* 22 */ JUMP32(BPF_JNE, BPF_REG_2, own6[1], 2), /* to 25 */
        /* 23 */ FIELD(BPF_REG_2, local_ip6[3]),
        /* 24 */ JUMP32(BPF_JEQ, BPF_REG_2, own6[3], 20), /* to 45 */
        /* 25 */ BPF_SET(BPF_REG_7, SLOT_TCP),
        /* 26 */ FIELD(BPF_REG_2, protocol),
        /* 27 */ BPF_JUMP_EQ(BPF_REG_2, IPPROTO_TCP, 3), /* to 31 */
        /* 28 */ BPF_SET(BPF_REG_7, SLOT_UDP),
        /* 29 */ BPF_JUMP_EQ(BPF_REG_3, DNS_PORT, 1), /* to 31 */
        /* 30 */ BPF_SET(BPF_REG_7, SLOT_REST),
        /* 31 */ BPF_STORE(BPF_W, BPF_REG_10, -4, BPF_REG_7),
        /* 32 */ BPF_LOAD_MAP(BPF_REG_1, map), /* and 33 */
        /* 34 */ BPF_MOVE(BPF_REG_2, BPF_REG_10),
        /* 35 */ BPF_PLUS(BPF_REG_2, -4),
        /* 36 */ BPF_CALL_FN(BPF_FUNC_map_lookup_elem),
        /* 37 */ BPF_JUMP_EQ(BPF_REG_0, 0, 7), /* to 45 */
        /* 38 */ BPF_MOVE(BPF_REG_7, BPF_REG_0),
        /* 39 */ BPF_MOVE(BPF_REG_1, BPF_REG_6),
        /* 40 */ BPF_MOVE(BPF_REG_2, BPF_REG_7),
        /* 41 */ BPF_SET(BPF_REG_3, BPF_SK_LOOKUP_F_NO_REUSEPORT), /* this one, not its group */
        /* 42 */ BPF_CALL_FN(BPF_FUNC_sk_assign),
        /* 43 */ BPF_MOVE(BPF_REG_1, BPF_REG_7),
        /* 44 */ BPF_CALL_FN(BPF_FUNC_sk_release),
        /* 45 */ BPF_SET(BPF_REG_0, SK_PASS),
        /* 46 */ BPF_END_IT(),
    };
    union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_SK_LOOKUP,
                            .expected_attach_type = BPF_SK_LOOKUP,
                            .insns = BPF_ADDRESS(program),
                            .insn_cnt = ARRAY_LEN(program),
                            .license = BPF_ADDRESS("Apache-2.0") };
    return bpf_do(BPF_PROG_LOAD, &attr);
}

int sklookup_attach(int tcp_fd, int udp_fd, int rest_fd, int *ret_link, struct err *err)
{
    _cleanup_fd_ int map = make_map();
    if (map < 0)
        return err_set(err, -map, "cannot make a BPF map of sockets");
    int r = put_socket(map, SLOT_TCP, tcp_fd);
    if (r == 0)
        r = put_socket(map, SLOT_UDP, udp_fd);
    if (r == 0)
        r = put_socket(map, SLOT_REST, rest_fd);
    if (r < 0)
        return err_set(err, -r, "cannot put a socket into a BPF map");
    _cleanup_fd_ int program = load(map);
    if (program < 0)
        return err_set(err, -program, "cannot load the BPF program");
    _cleanup_fd_ int ns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (ns < 0)
        return err_set(err, errno, "cannot open the network namespace");
    union bpf_attr attr = { .link_create = { .prog_fd = (uint32_t)program,
                                             .target_fd = (uint32_t)ns,
                                             .attach_type = BPF_SK_LOOKUP } };
    r = bpf_do(BPF_LINK_CREATE, &attr);
    if (r < 0)
        return err_set(err, -r, "cannot attach the BPF program");
    *ret_link = r;
    return 0;
}
