#include "init/frame.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "init/proc.h"
#include "init/ps.h"

/* Leave room for the header; frame_close writes it when the length is known. */
static int frame_open(struct buf *b, size_t *ret_at)
{
    static const char room[WIRE_HEADER_SIZE];
    *ret_at = b->len;
    return buf_append(b, room, sizeof(room));
}

static int frame_close(struct buf *b, size_t at, enum wire_type type, uint64_t offset, int r)
{
    if (r < 0) {
        if (b->len > at)
            b->len = at;
        return r;
    }
    struct wire_header h = {
        .len = (uint32_t)(b->len - at - WIRE_HEADER_SIZE),
        .type = (uint8_t)type,
        .offset = offset,
    };
    wire_header_put((unsigned char *)b->data + at, &h);
    return 0;
}

int frame_empty(struct buf *b, enum wire_type type)
{
    size_t at;
    int r = frame_open(b, &at);
    return frame_close(b, at, type, 0, r);
}

int frame_error(struct buf *b, const struct err *err)
{
    size_t at;
    int r = frame_open(b, &at);
    if (r == 0)
        r = wire_put_u64(b, WIRE_T_CODE, (uint64_t)err->code);
    if (r == 0)
        r = wire_put_str(b, WIRE_T_WHAT, failure_name(err->failure));
    if (r == 0)
        r = wire_put_str(b, WIRE_T_MESSAGE, err->msg);
    return frame_close(b, at, WIRE_ERROR, 0, r);
}

int frame_pong(struct buf *b, uint64_t uptime_ms, uint64_t live)
{
    size_t at;
    int r = frame_open(b, &at);
    if (r == 0)
        r = wire_put_u64(b, WIRE_T_UPTIME_MS, uptime_ms);
    if (r == 0)
        r = wire_put_u64(b, WIRE_T_PROCS, live);
    return frame_close(b, at, WIRE_OK, 0, r);
}

int frame_dropped(struct buf *b, uint64_t offset, uint64_t bytes)
{
    size_t at;
    int r = frame_open(b, &at);
    if (r == 0)
        r = wire_put_u64(b, WIRE_T_BYTES, bytes);
    return frame_close(b, at, WIRE_DROPPED, offset, r);
}

int frame_output(struct buf *b, unsigned stream, uint64_t offset, size_t n)
{
    unsigned char head[WIRE_HEADER_SIZE];
    struct wire_header h = {
        .len = (uint32_t)n,
        .type = WIRE_OUTPUT,
        .stream = (uint8_t)stream,
        .offset = offset,
    };
    wire_header_put(head, &h);
    return buf_append(b, head, sizeof(head));
}

static int put_args(struct buf *b, const char *args, size_t n)
{
    int r = 0;
    size_t count = 0;
    for (size_t at = 0; at < n && count < PS_ARGS_MAX && r == 0; count++) {
        r = wire_put_str(b, WIRE_T_ARGV, args + at);
        at += strlen(args + at) + 1;
    }
    return r;
}

struct number {
    enum wire_tag tag;
    uint64_t value;
};

static int put_numbers(struct buf *b, const struct number *ns, size_t n)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = wire_put_u64(b, ns[i].tag, ns[i].value);
    return r;
}

static int put_end(struct buf *b, const struct proc *p)
{
    bool signalled = WIFSIGNALED(p->status);
    const struct number ns[] = {
        { WIRE_T_REASON, p->reason },
        { WIRE_T_ENDED_MS, (uint64_t)p->ended_ms },
        { WIRE_T_CPU_US, p->cpu_us },
        { signalled ? WIRE_T_EXIT_SIGNAL : WIRE_T_EXIT_CODE,
          (uint64_t)(signalled ? WTERMSIG(p->status) : WEXITSTATUS(p->status)) },
    };
    return put_numbers(b, ns, ARRAY_LEN(ns));
}

static int put_usage(struct buf *b, const struct proc *p)
{
    struct ps_stat st;
    if (ps_read(p->pid, &st) < 0)
        return 0;
    const struct number ns[] = {
        { WIRE_T_PPID, (uint64_t)st.ppid },
        { WIRE_T_CPU_US, st.cpu_us },
        { WIRE_T_RSS_BYTES, st.rss_bytes },
    };
    return put_numbers(b, ns, ARRAY_LEN(ns));
}

int frame_proc(struct buf *b, enum wire_type type, const struct proc *p, bool fresh)
{
    bool ended = p->phase == PROC_DRAINING || p->phase == PROC_ENDED;
    const struct number ns[] = {
        { WIRE_T_PROC, p->number },
        { WIRE_T_PID, (uint64_t)p->pid },
        { WIRE_T_FLAGS, p->terminal ? WIRE_F_PTY : 0 },
        { WIRE_T_STATE, ended ? WIRE_ENDED : WIRE_RUNNING },
        { WIRE_T_STARTED_MS, (uint64_t)p->started_ms },
        { WIRE_T_OFFSET, p->drain.ring.tail },
    };
    size_t at;
    int r = frame_open(b, &at);
    if (r == 0)
        r = put_numbers(b, ns, ARRAY_LEN(ns));
    if (r == 0)
        r = put_args(b, p->args, p->args_n);
    if (r == 0)
        r = wire_put_str(b, WIRE_T_LABEL, p->label);
    if (r == 0)
        r = wire_put_str(b, WIRE_T_USER, p->user);
    if (r == 0 && ended)
        r = put_end(b, p);
    else if (r == 0 && fresh)
        r = put_usage(b, p);
    return frame_close(b, at, type, 0, r);
}

int frame_stranger(struct buf *b, int pid)
{
    struct ps_stat st;
    char args[PS_ARGS_BYTES_MAX];
    if (ps_read(pid, &st) < 0)
        return 0;
    ssize_t n = ps_args(pid, args, sizeof(args));
    if (n <= 0) /* a zombie has only its name left */
        n = snprintf(args, sizeof(args), "[%s]", st.comm) + 1;
    const struct number ns[] = {
        { WIRE_T_PID, (uint64_t)pid },      { WIRE_T_PPID, (uint64_t)st.ppid },
        { WIRE_T_STATE, WIRE_RUNNING },     { WIRE_T_CPU_US, st.cpu_us },
        { WIRE_T_RSS_BYTES, st.rss_bytes },
    };
    size_t at;
    int r = frame_open(b, &at);
    if (r == 0)
        r = put_numbers(b, ns, ARRAY_LEN(ns));
    if (r == 0)
        r = put_args(b, args, (size_t)n);
    return frame_close(b, at, WIRE_PROCESS, 0, r);
}
