#include "kernel/backlog.h"

#include <linux/btf.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "kernel/bpf.h"
#include "kernel/btf.h"

#define CELLS 65536    /* ids of a cell have their upper half in common */
#define RANGE_SHIFT 16 /* that half */
/* A packet that is no larger may be one without data, which confirms or ends a connection. */
#define SMALL_PACKET 160
#define CLOSED (-1)
#define FP BPF_REG_10
#define KEY (-4)

/* Where things lie in this kernel, in struct sock. */
struct places {
    int16_t state;
    int16_t socket;   /* NULL until it is accepted, and once it is closed */
    int16_t uid;      /* of its maker; a waiting connection has its listener's */
    int16_t waiting;  /* how many connections this listener has */
    int16_t received; /* begins with the size of what was received */
    int16_t group;    /* its memory group */
    /* In the group, where buffers of sockets are counted apart (v1). The kernel lets connections go beyond that limit: each
     * may have its first packets, and what it got before it was accepted. */
    bool apart;
    int16_t used, limit;
};

/* A listener's entry: the cell's number in the upper half, and in the lower one how many of the cell's connections were counted
 * for it. An array has the sum for each cell. */
struct maps {
    int listeners, cells;
};

static void find_apart(const struct btf *btf, struct places *p)
{
    int counter = btf_offset(btf, "mem_cgroup", "tcpmem");
    int usage = btf_offset(btf, "page_counter", "usage");
    int max = btf_offset(btf, "page_counter", "max");
    p->apart = counter >= 0 && usage >= 0 && max >= 0 && counter + usage <= INT16_MAX &&
               counter + max <= INT16_MAX;
    p->used = (int16_t)(counter + usage);
    p->limit = (int16_t)(counter + max);
}

static int find_places(const struct btf *btf, struct places *ret)
{
    int common = btf_offset(btf, "sock", "__sk_common");
    int state = btf_offset(btf, "sock_common", "skc_state");
    struct places p = { .state = (int16_t)(common + state) };
    const struct {
        const char *member;
        int16_t *place;
    } members[] = {
        { "sk_socket", &p.socket },    { "sk_uid", &p.uid },     { "sk_ack_backlog", &p.waiting },
        { "sk_backlog", &p.received }, { "sk_memcg", &p.group },
    };
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        int at = btf_offset(btf, "sock", members[i].member);
        if (common < 0 || state < 0 || at < 0 || at > INT16_MAX)
            return -ENOENT;
        *members[i].place = (int16_t)at;
    }
    find_apart(btf, &p);
    *ret = p;
    return 0;
}

/* ---- maps ---- */

/* The kernel wants types for what is stored with sockets: two numbers do. */
static int load_types(void)
{
    static const struct {
        struct btf_header head;
        struct {
            struct btf_type type;
            uint32_t number;
        } types[2];
        char names[5];
    } blob = {
        .head = { .magic = BTF_MAGIC,
                  .version = BTF_VERSION,
                  .hdr_len = sizeof(struct btf_header),
                  .type_len = sizeof(blob.types),
                  .str_off = sizeof(blob.types),
                  .str_len = sizeof(blob.names) },
        .types = { { { .name_off = 1, .info = BTF_KIND_INT << 24, .size = 4 }, 32 },
                   { { .name_off = 3, .info = BTF_KIND_INT << 24, .size = 8 }, 64 } },
        .names = "\0k\0v",
    };
    union bpf_attr attr = { .btf = BPF_ADDRESS(&blob),
                            .btf_size = offsetof(__typeof__(blob), names) + sizeof(blob.names) };
    return bpf_do(BPF_BTF_LOAD, &attr);
}

static int make_maps(struct maps *m)
{
    _cleanup_fd_ int types = load_types();
    if (types < 0)
        return types;
    union bpf_attr listeners = { .map_type = BPF_MAP_TYPE_SK_STORAGE,
                                 .key_size = sizeof(uint32_t),
                                 .value_size = sizeof(uint64_t),
                                 .map_flags = BPF_F_NO_PREALLOC,
                                 .btf_fd = (uint32_t)types,
                                 .btf_key_type_id = 1,
                                 .btf_value_type_id = 2 };
    union bpf_attr cells = { .map_type = BPF_MAP_TYPE_ARRAY,
                             .key_size = sizeof(uint32_t),
                             .value_size = sizeof(uint64_t),
                             .max_entries = CELLS };
    m->listeners = bpf_do(BPF_MAP_CREATE, &listeners);
    if (m->listeners < 0)
        return m->listeners;
    m->cells = bpf_do(BPF_MAP_CREATE, &cells);
    return m->cells < 0 ? m->cells : 0;
}

/* ---- the programs ---- */

/* r0 is where the sum of the cell in the key is, or NULL: there is one for every number. */
#define FIND_CELL(cells_)                                                               \
    BPF_LOAD_MAP(BPF_REG_1, cells_), BPF_MOVE(BPF_REG_2, FP), BPF_PLUS(BPF_REG_2, KEY), \
        BPF_CALL_FN(BPF_FUNC_map_lookup_elem)

#define LOWER_HALF(reg_) BPF_INSN(BPF_ALU | BPF_MOV | BPF_X, reg_, reg_, 0, 0)

static int load(enum bpf_prog_type type, enum bpf_attach_type at, const struct bpf_insn *program,
                size_t n)
{
    /* The licence, as the kernel looks into its own structures here: these instructions may be used under either. */
    union bpf_attr attr = { .prog_type = type,
                            .expected_attach_type = at,
                            .insns = BPF_ADDRESS(program),
                            .insn_cnt = (uint32_t)n,
                            .license = BPF_ADDRESS("Dual BSD/GPL") };
    return bpf_do(BPF_PROG_LOAD, &attr);
}

/* For each packet, with the socket that is to receive it: a listener for those that begin a connection. 1 lets it in,
 * 0 drops it. A listener's count is brought up to date before it may get another connection, and only by the cpu that
 * replaced the count which it read; so the sum is right however many do this at once. */
static int load_ingress(const struct places *p, const struct maps *m)
{
    const struct bpf_insn program[] = {
        /*  0 */ BPF_MOVE(BPF_REG_6, BPF_REG_1),
        /*  1 */ BPF_LOAD(BPF_DW, BPF_REG_1, BPF_REG_6, offsetof(struct __sk_buff, sk)),
        /*  2 */ BPF_JUMP_EQ(BPF_REG_1, 0, 59), /* to 62 */
        /*  3 */ BPF_CALL_FN(BPF_FUNC_skc_to_tcp_sock),
        /*  4 */ BPF_JUMP_EQ(BPF_REG_0, 0, 57), /* not TCP: to 62 */
        /*  5 */ BPF_MOVE(BPF_REG_7, BPF_REG_0),
        /*  6 */ BPF_LOAD(BPF_B, BPF_REG_9, BPF_REG_7, p->state),
        /*  7 */ BPF_LOAD(BPF_DW, BPF_REG_3, BPF_REG_7, p->socket),
        /*  8 */ BPF_JUMP_EQ(BPF_REG_9, TCP_LISTEN, 11),     /* to 20 */
        /*  9 */ BPF_JUMP_NE(BPF_REG_3, 0, 52),              /* accepted: to 62 */
        /* 10 */ BPF_JUMP_EQ(BPF_REG_9, TCP_ESTABLISHED, 2), /* to 13 */
        /* 11 */ BPF_JUMP_EQ(BPF_REG_9, TCP_SYN_RECV, 1),    /* to 13 */
        /* 12 */ BPF_JUMP_NE(BPF_REG_9, TCP_CLOSE_WAIT, 49), /* was closed: to 62 */

        /* One that waits: may it hold this packet, too? If not, 18 leads to 60. */
        /* 13 */ BPF_LOAD(BPF_W, BPF_REG_1, BPF_REG_7, p->received),
        /* 14 */ BPF_LOAD(BPF_W, BPF_REG_2, BPF_REG_6, offsetof(struct __sk_buff, len)),
        /* 15 */ BPF_PLUS_REG(BPF_REG_1, BPF_REG_2),
        /* 16 */ BPF_JUMP_GE(BPF_REG_2, SMALL_PACKET, 1), /* to 18 */
        /* 17 */ BPF_SHIFT_RIGHT(BPF_REG_1, 1),           /* up to twice as much */
        /* 18 */ BPF_INSN(BPF_JMP | BPF_JGT | BPF_K, BPF_REG_1, 0, 41, BACKLOG_BYTES_EACH),
        /* 19 */ BPF_JUMP(42), /* to 62 */

        /* A listener: if its group is far beyond what it may have in buffers, there are no more connections. Else count
         * those that wait at it, and the one that this packet may bring. */
        /* 20 */ BPF_LOAD(BPF_W, BPF_REG_1, BPF_REG_7, p->uid),
        /* 21 */ BPF_SHIFT_RIGHT(BPF_REG_1, RANGE_SHIFT),
        /* 22 */ BPF_STORE(BPF_W, FP, KEY, BPF_REG_1),
        /* 23 */ FIND_CELL(m->cells),           /* and 24 to 27 */
        /* 28 */ BPF_JUMP_EQ(BPF_REG_0, 0, 31), /* to 60 */
        /* 29 */ BPF_MOVE(BPF_REG_8, BPF_REG_0),
        /* 30 */ BPF_LOAD(BPF_DW, BPF_REG_1, BPF_REG_7, p->group),
        /* 31 */ p->apart ? BPF_LOAD(BPF_DW, BPF_REG_2, BPF_REG_1, p->used) : BPF_SET(BPF_REG_2, 0),
        /* 32 */ p->apart ? BPF_LOAD(BPF_DW, BPF_REG_3, BPF_REG_1, p->limit)
                          : BPF_SET(BPF_REG_3, 0),
        /* 33 */ BPF_SHIFT_RIGHT(BPF_REG_2, 1),
        /* 34 */ BPF_INSN(BPF_JMP | BPF_JGT | BPF_X, BPF_REG_2, BPF_REG_3, 25, 0), /* to 60 */
        /* 35 */ BPF_LOAD_MAP(BPF_REG_1, m->listeners),                            /* and 36 */
        /* 37 */ BPF_MOVE(BPF_REG_2, BPF_REG_7),
        /* 38 */ BPF_SET(BPF_REG_3, 0),
        /* 39 */ BPF_SET(BPF_REG_4, BPF_SK_STORAGE_GET_F_CREATE),
        /* 40 */ BPF_CALL_FN(BPF_FUNC_sk_storage_get),
        /* 41 */ BPF_JUMP_EQ(BPF_REG_0, 0, 18), /* cannot be counted: to 60 */
        /* 42 */ BPF_MOVE(BPF_REG_9, BPF_REG_0),
        /* 43 */ BPF_LOAD(BPF_W, BPF_REG_1, BPF_REG_7, p->waiting),
        /* 44 */ BPF_PLUS(BPF_REG_1, 1),
        /* 45 */ BPF_LOAD(BPF_W, BPF_REG_2, FP, KEY),
        /* 46 */ BPF_INSN(BPF_ALU64 | BPF_LSH | BPF_K, BPF_REG_2, 0, 0, 32),
        /* 47 */ BPF_OR_REG(BPF_REG_1, BPF_REG_2),
        /* 48 */ BPF_LOAD(BPF_DW, BPF_REG_0, BPF_REG_9, 0),
        /* 49 */ BPF_JUMP_EQ(BPF_REG_0, CLOSED, 10),                              /* to 60 */
        /* 50 */ BPF_INSN(BPF_JMP | BPF_JEQ | BPF_X, BPF_REG_0, BPF_REG_1, 7, 0), /* to 58 */
        /* 51 */ BPF_MOVE(BPF_REG_2, BPF_REG_0),
        /* 52 */ BPF_INSN(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_9, BPF_REG_1, 0, BPF_CMPXCHG),
        /* 53 */ BPF_INSN(BPF_JMP | BPF_JNE | BPF_X, BPF_REG_0, BPF_REG_2, 4, 0), /* to 58 */
        /* 54 */ LOWER_HALF(BPF_REG_1),
        /* 55 */ LOWER_HALF(BPF_REG_2),
        /* 56 */ BPF_INSN(BPF_ALU64 | BPF_SUB | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0),
        /* 57 */ BPF_ADD_TO(BPF_REG_8, 0, BPF_REG_1),
        /* 58 */ BPF_LOAD(BPF_DW, BPF_REG_3, BPF_REG_8, 0),
        /* 59 */ BPF_INSN(BPF_JMP | BPF_JLE | BPF_K, BPF_REG_3, 0, 2, BACKLOG_CONNECTIONS),
        /* 60 */ BPF_SET(BPF_REG_0, 0),
        /* 61 */ BPF_END_IT(),
        /* 62 */ BPF_SET(BPF_REG_0, 1),
        /* 63 */ BPF_END_IT(),
    };
    return load(BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_INGRESS, program, ARRAY_LEN(program));
}

/* When a socket is closed, before the kernel ends what waits at it: a packet that comes in between finds the listener's
 * entry closed, even if there was none before. */
static int load_release(const struct maps *m)
{
    const struct bpf_insn program[] = {
        /*  0 */ BPF_MOVE(BPF_REG_2, BPF_REG_1),
        /*  1 */ BPF_LOAD(BPF_W, BPF_REG_5, BPF_REG_1, offsetof(struct bpf_sock, state)),
        /*  2 */ BPF_SET(BPF_REG_3, 0),
        /*  3 */ BPF_SET(BPF_REG_4, 0),
        /*  4 */ BPF_JUMP_NE(BPF_REG_5, TCP_LISTEN, 1),
        /*  5 */ BPF_SET(BPF_REG_4, BPF_SK_STORAGE_GET_F_CREATE),
        /*  6 */ BPF_LOAD_MAP(BPF_REG_1, m->listeners), /* and 7 */
        /*  8 */ BPF_CALL_FN(BPF_FUNC_sk_storage_get),
        /*  9 */ BPF_JUMP_EQ(BPF_REG_0, 0, 15), /* no listener: to 25 */
        /* 10 */ BPF_SET(BPF_REG_6, CLOSED),
        /* 11 */ BPF_INSN(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_6, 0, BPF_XCHG),
        /* 12 */ BPF_JUMP_EQ(BPF_REG_6, CLOSED, 12), /* to 25 */
        /* 13 */ BPF_MOVE(BPF_REG_1, BPF_REG_6),
        /* 14 */ BPF_SHIFT_RIGHT(BPF_REG_1, 32),
        /* 15 */ BPF_STORE(BPF_W, FP, KEY, BPF_REG_1),
        /* 16 */ FIND_CELL(m->cells),          /* and 17 to 20 */
        /* 21 */ BPF_JUMP_EQ(BPF_REG_0, 0, 3), /* to 25 */
        /* 22 */ LOWER_HALF(BPF_REG_6),
        /* 23 */ BPF_INSN(BPF_ALU64 | BPF_NEG, BPF_REG_6, 0, 0, 0),
        /* 24 */ BPF_ADD_TO(BPF_REG_0, 0, BPF_REG_6),
        /* 25 */ BPF_SET(BPF_REG_0, 1),
        /* 26 */ BPF_END_IT(),
    };
    return load(BPF_PROG_TYPE_CGROUP_SOCK, BPF_CGROUP_INET_SOCK_RELEASE, program,
                ARRAY_LEN(program));
}

/* ---- where they are attached ---- */

static int attach(int group_fd, int program, enum bpf_attach_type at)
{
    return program < 0 ? program : bpf_attach(group_fd, program, at);
}

/* The one that closes entries comes first: none is made before it is there. */
static int bound(int group_fd, const struct places *p, struct maps *m)
{
    int r = make_maps(m);
    if (r < 0)
        return r;
    _cleanup_fd_ int release = load_release(m), ingress = load_ingress(p, m);
    r = attach(group_fd, release, BPF_CGROUP_INET_SOCK_RELEASE);
    return r < 0 ? r : attach(group_fd, ingress, BPF_CGROUP_INET_INGRESS);
}

int backlog_bound(int group_fd, struct err *err)
{
    _cleanup_(btf_freep) struct btf *btf = NULL;
    struct places p;
    struct maps m = { -1, -1 };
    int r = btf_open(BTF_OF_KERNEL, &btf, err);
    if (r < 0)
        return r;
    if (find_places(btf, &p) < 0)
        return err_set(err, ENOSYS, "the kernel's sockets are not as they should be");
    r = bound(group_fd, &p, &m);
    fd_close_all(&m.listeners, 1);
    fd_close_all(&m.cells, 1);
    return r < 0 ? err_set(err, -r, "cannot attach BPF programs to the control group") : 0;
}
