#include "kernel/netlinks.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "kernel/bpf.h"
#include "kernel/btf.h"
#include "kernel/sysctl.h"

#define CELLS 65536           /* ids of a cell have their upper half in common */
#define RANGE_SHIFT 16        /* that half */
#define SOCKETS_MAX (1 << 18) /* of all cells: 512 that have all they may; 4 MB of memory */
#define FP BPF_REG_10
#define KEY (-4)
#define SOCKET (-16)
#define RANGE (-24)
#define MADE "security_socket_post_create"
#define GONE "netlink_sock_destruct"

/* The control group; the cell of each socket that counts, by the socket's address; how many each cell has. */
struct maps {
    int group, sockets, cells;
};

static int put_group(int map, int group_fd)
{
    uint32_t key = 0;
    union bpf_attr attr = { .map_fd = (uint32_t)map,
                            .key = BPF_ADDRESS(&key),
                            .value = BPF_ADDRESS(&group_fd) };
    return bpf_do(BPF_MAP_UPDATE_ELEM, &attr);
}

static int make_maps(int group_fd, struct maps *m)
{
    m->sockets = bpf_map_make(BPF_MAP_TYPE_HASH, sizeof(uint64_t), sizeof(uint64_t), SOCKETS_MAX,
                              BPF_F_NO_PREALLOC);
    if (m->sockets < 0)
        return m->sockets;
    m->cells = bpf_map_make(BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(uint64_t), CELLS, 0);
    if (m->cells < 0)
        return m->cells;
    m->group = bpf_map_make(BPF_MAP_TYPE_CGROUP_ARRAY, sizeof(uint32_t), sizeof(uint32_t), 1, 0);
    return m->group < 0 ? m->group : put_group(m->group, group_fd);
}

static void close_maps(struct maps *m)
{
    const int fds[] = { m->group, m->sockets, m->cells };
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

static int32_t most(void)
{
    uint64_t each = sysctl_u64("net/core/rmem_default");
    uint64_t n = (uint64_t)NETLINKS_MOST * NETLINKS_BUFFER / (each ? each : NETLINKS_BUFFER);
    return n > NETLINKS_MOST ? NETLINKS_MOST : n < NETLINKS_LEAST ? NETLINKS_LEAST : (int32_t)n;
}

/* ---- the programs ---- */

/* An entry of a map, by the key that is there on the stack: r0 is where it is, or NULL. */
#define FIND(map_, at_)                                                               \
    BPF_LOAD_MAP(BPF_REG_1, map_), BPF_MOVE(BPF_REG_2, FP), BPF_PLUS(BPF_REG_2, at_), \
        BPF_CALL_FN(BPF_FUNC_map_lookup_elem)

static int load(union bpf_attr *attr, const struct bpf_insn *program, size_t n)
{
    /* The kernel wants a licence like its own here: these instructions may be used under either. */
    attr->insns = BPF_ADDRESS(program);
    attr->insn_cnt = (uint32_t)n;
    attr->license = BPF_ADDRESS("Dual BSD/GPL");
    return bpf_do(BPF_PROG_LOAD, attr);
}

/* A socket was made, and its maker has no descriptor yet: count it if it is a cell's netlink socket. It counts until it is
 * gone even if it is refused. The arguments are the socket and its family. */
static int load_made(int function, int16_t sock, const struct maps *m)
{
    const struct bpf_insn program[] = {
        /*  0 */ BPF_MOVE(BPF_REG_6, BPF_REG_1),
        /*  1 */ BPF_LOAD(BPF_DW, BPF_REG_2, BPF_REG_6, 8),
        /*  2 */ BPF_JUMP32_NE(BPF_REG_2, AF_NETLINK, 34), /* to 37 */
        /*  3 */ BPF_LOAD_MAP(BPF_REG_1, m->group),        /* and 4 */
        /*  5 */ BPF_SET(BPF_REG_2, 0),
        /*  6 */ BPF_CALL_FN(BPF_FUNC_current_task_under_cgroup),
        /*  7 */ BPF_JUMP_NE(BPF_REG_0, 1, 29), /* to 37 */
        /*  8 */ BPF_CALL_FN(BPF_FUNC_get_current_uid_gid),
        /*  9 */ BPF_INSN(BPF_ALU | BPF_MOV | BPF_X, BPF_REG_7, BPF_REG_0, 0, 0), /* the uid */
        /* 10 */ BPF_SHIFT_RIGHT(BPF_REG_7, RANGE_SHIFT),
        /* 11 */ BPF_JUMP_EQ(BPF_REG_7, 0, 25), /* the host's: to 37 */
        /* 12 */ BPF_STORE(BPF_W, FP, KEY, BPF_REG_7),
        /* 13 */ BPF_STORE(BPF_DW, FP, RANGE, BPF_REG_7),
        /* 14 */ BPF_LOAD(BPF_DW, BPF_REG_2, BPF_REG_6, 0),
        /* 15 */ BPF_LOAD(BPF_DW, BPF_REG_2, BPF_REG_2, sock),
        /* 16 */ BPF_STORE(BPF_DW, FP, SOCKET, BPF_REG_2),
        /* 17 */ BPF_LOAD_MAP(BPF_REG_1, m->sockets), /* and 18 */
        /* 19 */ BPF_MOVE(BPF_REG_2, FP),
        /* 20 */ BPF_PLUS(BPF_REG_2, SOCKET),
        /* 21 */ BPF_MOVE(BPF_REG_3, FP),
        /* 22 */ BPF_PLUS(BPF_REG_3, RANGE),
        /* 23 */ BPF_SET(BPF_REG_4, BPF_ANY),
        /* 24 */ BPF_CALL_FN(BPF_FUNC_map_update_elem),
        /* 25 */ BPF_JUMP_NE(BPF_REG_0, 0, 9), /* cannot be counted: to 35 */
        /* 26 */ FIND(m->cells, KEY),          /* and 27 to 30 */
        /* 31 */ BPF_JUMP_EQ(BPF_REG_0, 0, 3), /* to 35 */
        /* 32 */ BPF_SET(BPF_REG_1, 1),
        /* 33 */
        BPF_INSN(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_1, 0, BPF_ADD | BPF_FETCH),
        /* 34 */ BPF_INSN(BPF_JMP | BPF_JSLT | BPF_K, BPF_REG_1, 0, 2, most()), /* to 37 */
        /* 35 */ BPF_SET(BPF_REG_0, -EMFILE),
        /* 36 */ BPF_END_IT(),
        /* 37 */ BPF_SET(BPF_REG_0, 0),
        /* 38 */ BPF_END_IT(),
    };
    union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_TRACING,
                            .expected_attach_type = BPF_MODIFY_RETURN,
                            .attach_btf_id = (uint32_t)function };
    return load(&attr, program, ARRAY_LEN(program));
}

/* The kernel is about to free a netlink socket and what waits in it. */
static int load_gone(int function, const struct maps *m)
{
    const struct bpf_insn program[] = {
        /*  0 */ BPF_LOAD(BPF_DW, BPF_REG_2, BPF_REG_1, 0),
        /*  1 */ BPF_STORE(BPF_DW, FP, SOCKET, BPF_REG_2),
        /*  2 */ FIND(m->sockets, SOCKET),      /* and 3 to 6 */
        /*  7 */ BPF_JUMP_EQ(BPF_REG_0, 0, 15), /* does not count: to 23 */
        /*  8 */ BPF_LOAD(BPF_DW, BPF_REG_1, BPF_REG_0, 0),
        /*  9 */ BPF_STORE(BPF_W, FP, KEY, BPF_REG_1),
        /* 10 */ FIND(m->cells, KEY),          /* and 11 to 14 */
        /* 15 */ BPF_JUMP_EQ(BPF_REG_0, 0, 2), /* to 18 */
        /* 16 */ BPF_SET(BPF_REG_1, -1),
        /* 17 */ BPF_ADD_TO(BPF_REG_0, 0, BPF_REG_1),
        /* 18 */ BPF_LOAD_MAP(BPF_REG_1, m->sockets), /* and 19 */
        /* 20 */ BPF_MOVE(BPF_REG_2, FP),
        /* 21 */ BPF_PLUS(BPF_REG_2, SOCKET),
        /* 22 */ BPF_CALL_FN(BPF_FUNC_map_delete_elem),
        /* 23 */ BPF_SET(BPF_REG_0, 0),
        /* 24 */ BPF_END_IT(),
    };
    union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_TRACING,
                            .expected_attach_type = BPF_TRACE_FENTRY,
                            .attach_btf_id = (uint32_t)function };
    return load(&attr, program, ARRAY_LEN(program));
}

#define FIELD(size_, dst_, field_) \
    BPF_LOAD(size_, dst_, BPF_REG_6, offsetof(struct bpf_sockopt, field_))

/* The kernel doubles the value, and takes one below zero for a large one. A length of 0 passes on what the caller gave: a
 * program sees a page of it at most. */
static int load_option(void)
{
    const struct bpf_insn program[] = {
        /*  0 */ BPF_MOVE(BPF_REG_6, BPF_REG_1),
        /*  1 */ FIELD(BPF_W, BPF_REG_2, level),
        /*  2 */ BPF_JUMP_NE(BPF_REG_2, SOL_SOCKET, 16), /* to 19 */
        /*  3 */ FIELD(BPF_W, BPF_REG_2, optname),
        /*  4 */ BPF_JUMP_EQ(BPF_REG_2, SO_RCVBUF, 1),  /* to 6 */
        /*  5 */ BPF_JUMP_NE(BPF_REG_2, SO_SNDBUF, 13), /* to 19 */
        /*  6 */ FIELD(BPF_DW, BPF_REG_1, sk),
        /*  7 */ BPF_LOAD(BPF_W, BPF_REG_2, BPF_REG_1, offsetof(struct bpf_sock, family)),
        /*  8 */ BPF_JUMP_NE(BPF_REG_2, AF_NETLINK, 10), /* to 19 */
        /*  9 */ FIELD(BPF_DW, BPF_REG_2, optval),
        /* 10 */ FIELD(BPF_DW, BPF_REG_3, optval_end),
        /* 11 */ BPF_MOVE(BPF_REG_4, BPF_REG_2),
        /* 12 */ BPF_PLUS(BPF_REG_4, sizeof(uint32_t)),
        /* 13 */ BPF_INSN(BPF_JMP | BPF_JGT | BPF_X, BPF_REG_4, BPF_REG_3, 5, 0), /* to 19 */
        /* 14 */ BPF_LOAD(BPF_W, BPF_REG_4, BPF_REG_2, 0),
        /* 15 */ BPF_INSN(BPF_JMP | BPF_JLE | BPF_K, BPF_REG_4, 0, 3, NETLINKS_BUFFER / 2),
        /* 16 */ BPF_INSN(BPF_ST | BPF_MEM | BPF_W, BPF_REG_2, 0, 0, NETLINKS_BUFFER / 2),
        /* 17 */ BPF_SET(BPF_REG_2, sizeof(uint32_t)),
        /* 18 */ BPF_JUMP(1), /* to 20 */
        /* 19 */ BPF_SET(BPF_REG_2, 0),
        /* 20 */ BPF_STORE(BPF_W, BPF_REG_6, offsetof(struct bpf_sockopt, optlen), BPF_REG_2),
        /* 21 */ BPF_SET(BPF_REG_0, 1),
        /* 22 */ BPF_END_IT(),
    };
    union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_CGROUP_SOCKOPT,
                            .expected_attach_type = BPF_CGROUP_SETSOCKOPT };
    return load(&attr, program, ARRAY_LEN(program));
}

/* ---- where they are attached ---- */

static int trace(int program)
{
    union bpf_attr attr = { .raw_tracepoint = { .prog_fd = (uint32_t)program } };
    return program < 0 ? program : bpf_do(BPF_RAW_TRACEPOINT_OPEN, &attr);
}

/* The one that takes away comes first: nothing is counted before it is there. */
static int count(const struct btf *btf, const struct maps *m)
{
    int made_at = btf_function(btf, MADE), gone_at = btf_function(btf, GONE);
    int sock = btf_offset(btf, "socket", "sk");
    if (made_at < 0 || gone_at < 0 || sock < 0)
        return -ENOSYS;
    _cleanup_fd_ int gone = load_gone(gone_at, m), made = load_made(made_at, (int16_t)sock, m);
    _cleanup_fd_ int watch_gone = trace(gone);
    if (watch_gone < 0)
        return watch_gone;
    int watch_made = trace(made);
    if (watch_made < 0)
        return watch_made;
    (void)take_fd(watch_gone); /* both are held for as long as we live */
    return 0;
}

int netlinks_bound(int group_fd, struct err *err)
{
    _cleanup_(btf_freep) struct btf *btf = NULL;
    struct maps m = { -1, -1, -1 };
    _cleanup_fd_ int option = load_option();
    int r = option < 0 ? option : bpf_attach(group_fd, option, BPF_CGROUP_SETSOCKOPT);
    if (r < 0)
        return err_set(err, -r, "cannot bound the buffers of netlink sockets");
    r = btf_open(BTF_OF_KERNEL, &btf, err);
    if (r < 0)
        return r;
    r = make_maps(group_fd, &m);
    if (r == 0)
        r = count(btf, &m);
    close_maps(&m); /* the programs hold them */
    return r < 0 ? err_set(err, -r, "cannot count netlink sockets") : 0;
}
