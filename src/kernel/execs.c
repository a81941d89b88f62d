#include "kernel/execs.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#include "base/clock.h"
#include "base/hash.h"
#include "kernel/bpf.h"

#define BOXES_MAX 65536
#define PROGRAMS_MAX 16384 /* of all cells; the one that was not run for longest makes room */
#define BATCH 512
#define ID_FILE "events/sched/sched_process_exec/id"
#define RANGE_SHIFT 16 /* ids of a cell have their upper half in common */
#define FILENAME_AT 8  /* in the tracepoint's record: where the path is, relative to its start */

struct box_value {
    uint64_t id;
    uint64_t programs; /* different ones */
    uint64_t others;
};

struct program_key {
    uint64_t id;
    char path[EXECS_PATH_SIZE];
};

struct program_value {
    uint64_t count, first_ns, last_ns;
};

struct execs {
    int boxes, programs; /* the maps */
    int program, event;
};

/* ---- the program ---- */

#define FP BPF_REG_10
#define RANGE (-4)
#define KEY (-144)
#define PATH (KEY + 8)
#define VALUE (-168)
#define FOUR(at_)                                                                           \
    BPF_STORE_ZERO(FP, at_), BPF_STORE_ZERO(FP, (at_) + 8), BPF_STORE_ZERO(FP, (at_) + 16), \
        BPF_STORE_ZERO(FP, (at_) + 24)

static int load(int boxes, int programs)
{
    _Static_assert(sizeof(struct program_key) == RANGE - 4 - KEY, "the key's place");
    _Static_assert(sizeof(struct program_value) == KEY - VALUE, "the value's place");
    const struct bpf_insn program[] = {
        /*  0 */ BPF_MOVE(BPF_REG_6, BPF_REG_1),
        /*  1 */ BPF_CALL_FN(BPF_FUNC_get_current_uid_gid),
        /*  2 */ BPF_INSN(BPF_ALU | BPF_MOV | BPF_X, BPF_REG_7, BPF_REG_0, 0, 0), /* the uid */
        /*  3 */ BPF_SHIFT_RIGHT(BPF_REG_7, RANGE_SHIFT),
        /*  4 */ BPF_STORE(BPF_W, FP, RANGE, BPF_REG_7),
        /*  5 */ BPF_LOAD_MAP(BPF_REG_1, boxes),
        /*  7 */ BPF_MOVE(BPF_REG_2, FP),
        /*  8 */ BPF_PLUS(BPF_REG_2, RANGE),
        /*  9 */ BPF_CALL_FN(BPF_FUNC_map_lookup_elem),
        /* 10 */ BPF_JUMP_EQ(BPF_REG_0, 0, 57), /* nobody of ours: to 68 */
        /* 11 */ BPF_MOVE(BPF_REG_8, BPF_REG_0),
        /* 12 */ BPF_LOAD(BPF_DW, BPF_REG_1, BPF_REG_8, offsetof(struct box_value, id)),
        /* 13 */ BPF_STORE(BPF_DW, FP, KEY, BPF_REG_1),
        /* 14 */ FOUR(PATH),
        /* 18 */ FOUR(PATH + 32),
        /* 22 */ FOUR(PATH + 64),
        /* 26 */ FOUR(PATH + 96),
        /* 30 */ BPF_MOVE(BPF_REG_1, FP),
        /* 31 */ BPF_PLUS(BPF_REG_1, PATH),
        /* 32 */ BPF_SET(BPF_REG_2, EXECS_PATH_SIZE),
        /* 33 */ BPF_LOAD(BPF_W, BPF_REG_3, BPF_REG_6, FILENAME_AT),
        /* 34 */ BPF_MASK(BPF_REG_3, 0xffff),
        /* 35 */ BPF_PLUS_REG(BPF_REG_3, BPF_REG_6),
        /* 36 */ BPF_CALL_FN(BPF_FUNC_probe_read_kernel_str),
        /* 37 */ BPF_LOAD_MAP(BPF_REG_1, programs),
        /* 39 */ BPF_MOVE(BPF_REG_2, FP),
        /* 40 */ BPF_PLUS(BPF_REG_2, KEY),
        /* 41 */ BPF_CALL_FN(BPF_FUNC_map_lookup_elem),
        /* 42 */ BPF_JUMP_NE(BPF_REG_0, 0, 17), /* known: to 60 */
        /* 43 */ BPF_LOAD(BPF_DW, BPF_REG_1, BPF_REG_8, offsetof(struct box_value, programs)),
        /* 44 */ BPF_JUMP_GE(BPF_REG_1, EXECS_PROGRAMS_MAX, 21), /* too many: to 66 */
        /* 45 */ BPF_SET(BPF_REG_1, 1),
        /* 46 */ BPF_ADD_TO(BPF_REG_8, offsetof(struct box_value, programs), BPF_REG_1),
        /* 47 */ BPF_STORE(BPF_DW, FP, VALUE, BPF_REG_1),
        /* 48 */ BPF_CALL_FN(BPF_FUNC_ktime_get_ns),
        /* 49 */ BPF_STORE(BPF_DW, FP, VALUE + 8, BPF_REG_0),
        /* 50 */ BPF_STORE(BPF_DW, FP, VALUE + 16, BPF_REG_0),
        /* 51 */ BPF_LOAD_MAP(BPF_REG_1, programs),
        /* 53 */ BPF_MOVE(BPF_REG_2, FP),
        /* 54 */ BPF_PLUS(BPF_REG_2, KEY),
        /* 55 */ BPF_MOVE(BPF_REG_3, FP),
        /* 56 */ BPF_PLUS(BPF_REG_3, VALUE),
        /* 57 */ BPF_SET(BPF_REG_4, BPF_ANY),
        /* 58 */ BPF_CALL_FN(BPF_FUNC_map_update_elem),
        /* 59 */ BPF_JUMP(8), /* to 68 */
        /* 60 */ BPF_MOVE(BPF_REG_9, BPF_REG_0),
        /* 61 */ BPF_SET(BPF_REG_1, 1),
        /* 62 */ BPF_ADD_TO(BPF_REG_9, offsetof(struct program_value, count), BPF_REG_1),
        /* 63 */ BPF_CALL_FN(BPF_FUNC_ktime_get_ns),
        /* 64 */
        BPF_STORE(BPF_DW, BPF_REG_9, offsetof(struct program_value, last_ns), BPF_REG_0),
        /* 65 */ BPF_JUMP(2), /* to 68 */
        /* 66 */ BPF_SET(BPF_REG_1, 1),
        /* 67 */ BPF_ADD_TO(BPF_REG_8, offsetof(struct box_value, others), BPF_REG_1),
        /* 68 */ BPF_SET(BPF_REG_0, 0),
        /* 69 */ BPF_END_IT(),
    };
    /* To read the kernel's memory takes a program whose licence the kernel knows to be its own:
     * these instructions may be used under either. */
    union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_TRACEPOINT,
                            .insns = BPF_ADDRESS(program),
                            .insn_cnt = ARRAY_LEN(program),
                            .license = BPF_ADDRESS("Dual BSD/GPL") };
    return bpf_do(BPF_PROG_LOAD, &attr);
}

/* ---- where it is attached ---- */

/* From a tracefs of our own, which has no place in any tree. */
static int tracepoint_id(void)
{
    char text[16] = "";
    _cleanup_fd_ int context = fsopen("tracefs", FSOPEN_CLOEXEC);
    if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    _cleanup_fd_ int mount = fsmount(context, FSMOUNT_CLOEXEC, 0);
    _cleanup_fd_ int fd = mount < 0 ? -1 : openat(mount, ID_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
        return -errno;
    int id = (int)strtol(text, NULL, 10);
    return id > 0 ? id : -EINVAL;
}

/* The program belongs to the tracepoint, on every cpu; the event only keeps it there. */
static int attach(int program, int id)
{
    struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT,
                                    .size = sizeof(attr),
                                    .config = (uint64_t)id,
                                    .sample_period = 1 };
    _cleanup_fd_ int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) < 0 ||
        ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
        return -errno;
    return take_fd(fd);
}

static int start(struct execs *x, struct err *err)
{
    x->boxes = bpf_map_make(BPF_MAP_TYPE_HASH, sizeof(uint32_t), sizeof(struct box_value),
                            BOXES_MAX, BPF_F_NO_PREALLOC);
    x->programs = bpf_map_make(BPF_MAP_TYPE_LRU_HASH, sizeof(struct program_key),
                               sizeof(struct program_value), PROGRAMS_MAX, 0);
    if (x->boxes < 0 || x->programs < 0)
        return err_set(err, x->boxes < 0 ? -x->boxes : -x->programs, "cannot make a BPF map");
    x->program = load(x->boxes, x->programs);
    if (x->program < 0)
        return err_set(err, -x->program, "cannot load the BPF program");
    int id = tracepoint_id();
    if (id < 0)
        return err_set(err, -id, "cannot find the tracepoint of exec");
    x->event = attach(x->program, id);
    return x->event < 0 ? err_set(err, -x->event, "cannot attach to the tracepoint of exec") : 0;
}

int execs_new(struct execs **ret_execs, struct err *err)
{
    struct execs *x = malloc(sizeof(*x));
    if (!x)
        return err_set(err, ENOMEM, "out of memory");
    *x = (struct execs){ -1, -1, -1, -1 };
    int r = start(x, err);
    if (r < 0) {
        execs_free(x);
        return r;
    }
    *ret_execs = x;
    return 0;
}

void execs_free(struct execs *x)
{
    if (!x)
        return;
    const int fds[] = { x->event, x->program, x->programs, x->boxes };
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    free(x);
}

/* ---- cells ---- */

void execs_begin(struct execs *x, uint32_t uid_base, const char *id)
{
    uint32_t range = uid_base >> RANGE_SHIFT;
    struct box_value value = { .id = hash_text(id) };
    if (!x)
        return;
    union bpf_attr attr = { .map_fd = (uint32_t)x->boxes,
                            .key = BPF_ADDRESS(&range),
                            .value = BPF_ADDRESS(&value),
                            .flags = BPF_ANY };
    (void)bpf_do(BPF_MAP_UPDATE_ELEM, &attr); /* a full map: this one is not counted */
}

void execs_end(struct execs *x, uint32_t uid_base)
{
    uint32_t range = uid_base >> RANGE_SHIFT;
    if (!x)
        return;
    union bpf_attr attr = { .map_fd = (uint32_t)x->boxes, .key = BPF_ADDRESS(&range) };
    (void)bpf_do(BPF_MAP_DELETE_ELEM, &attr);
}

static void tell(const struct program_key *key, const struct program_value *value, int64_t wall_ms,
                 struct execs_program *out)
{
    *out = (struct execs_program){ .count = value->count,
                                   .first_ms = wall_ms + (int64_t)(value->first_ns / 1000000),
                                   .last_ms = wall_ms + (int64_t)(value->last_ns / 1000000) };
    memcpy(out->path, key->path, sizeof(out->path));
    out->path[sizeof(out->path) - 1] = '\0';
}

size_t execs_list(struct execs *x, const char *id, struct execs_program *out, size_t max)
{
    struct program_key *keys = calloc(BATCH, sizeof(*keys));
    struct program_value *values = calloc(BATCH, sizeof(*values));
    int64_t wall_ms = clock_now_ms() - clock_mono_ms();
    uint64_t wanted = hash_text(id);
    uint32_t place = 0;
    size_t n = 0;
    bool more = x && keys && values;
    for (bool first = true; more; first = false) {
        union bpf_attr attr = { .batch = { .in_batch = first ? 0 : BPF_ADDRESS(&place),
                                           .out_batch = BPF_ADDRESS(&place),
                                           .keys = BPF_ADDRESS(keys),
                                           .values = BPF_ADDRESS(values),
                                           .count = BATCH,
                                           .map_fd = (uint32_t)x->programs } };
        more = bpf_do(BPF_MAP_LOOKUP_BATCH, &attr) == 0; /* -ENOENT: these were the last */
        for (uint32_t i = 0; i < attr.batch.count && n < max; i++)
            if (keys[i].id == wanted)
                tell(&keys[i], &values[i], wall_ms, &out[n++]);
    }
    free(keys);
    free(values);
    return n;
}
