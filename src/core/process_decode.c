#include "core/process_decode.h"

#include <errno.h>
#include <string.h>

#define TIME_MAX_MS 253402300799999 /* the end of the year 9999 */
#define PID_MAX_VALUE (1 << 22)     /* the kernel's own limit */
#define ARGV_FIRST 8

void process_done(struct process *p)
{
    for (char **a = p->argv; a && *a; a++)
        free(*a);
    free(p->argv);
    free(p->label);
    free(p->user);
    *p = (struct process){ 0 };
}

void process_list_free(struct process *ps, size_t n)
{
    for (size_t i = 0; i < n; i++)
        process_done(&ps[i]);
    free(ps);
}

static int put_text(char **at, const struct wire_field *f)
{
    char *s;
    int r = wire_field_str(f, &s);
    if (r < 0)
        return r == -EINVAL ? -EPROTO : r;
    free(*at);
    *at = s;
    return 0;
}

static int put_arg(struct process *p, size_t *argc, const struct wire_field *f)
{
    /* Room doubles when the count is a power of two: argv always has a free, NULL last place. */
    if (*argc == 0 || (*argc >= ARGV_FIRST && (*argc & (*argc - 1)) == 0)) {
        size_t room = *argc == 0 ? ARGV_FIRST : *argc * 2;
        char **grown = realloc(p->argv, (room + 1) * sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        p->argv = grown;
        p->argv[*argc] = NULL;
    }
    p->argv[*argc] = NULL;
    int r = put_text(&p->argv[*argc], f);
    if (r < 0)
        return r;
    p->argv[++*argc] = NULL;
    return 0;
}

static int put_number(struct process *p, enum wire_tag tag, uint64_t v)
{
    switch ((int)tag) {
    case WIRE_T_PROC:
        p->proc = v;
        p->tracked = v != 0;
        return 0;
    case WIRE_T_PID: p->pid = (int64_t)v; return v <= PID_MAX_VALUE ? 0 : -EPROTO;
    case WIRE_T_PPID: p->ppid = (int64_t)v; return v <= PID_MAX_VALUE ? 0 : -EPROTO;
    case WIRE_T_FLAGS: p->pty = v & WIRE_F_PTY; return 0;
    case WIRE_T_STATE: p->ended = v == WIRE_ENDED; return v <= WIRE_ENDED ? 0 : -EPROTO;
    case WIRE_T_EXIT_CODE: p->exit_code = (int)v; return v <= 255 ? 0 : -EPROTO;
    case WIRE_T_EXIT_SIGNAL: p->exit_signal = (int)v; return v <= 64 ? 0 : -EPROTO;
    case WIRE_T_REASON: p->reason = (enum wire_reason)v; return v <= WIRE_TIMEOUT ? 0 : -EPROTO;
    case WIRE_T_STARTED_MS: p->started_ms = (int64_t)v; return v <= TIME_MAX_MS ? 0 : -EPROTO;
    case WIRE_T_ENDED_MS: p->ended_ms = (int64_t)v; return v <= TIME_MAX_MS ? 0 : -EPROTO;
    case WIRE_T_CPU_US: p->cpu_us = v; return 0;
    case WIRE_T_RSS_BYTES: p->rss_bytes = v; return 0;
    case WIRE_T_OFFSET: p->output_bytes = v; return 0;
    default: return 0;
    }
}

static int decode_field(struct process *p, size_t *argc, const struct wire_field *f)
{
    if (f->tag == WIRE_T_ARGV)
        return put_arg(p, argc, f);
    if (f->tag == WIRE_T_LABEL)
        return put_text(&p->label, f);
    if (f->tag == WIRE_T_USER)
        return put_text(&p->user, f);
    if (f->n != sizeof(uint64_t))
        return 0;
    uint64_t v;
    int r = wire_field_u64(f, &v);
    return r < 0 ? r : put_number(p, f->tag, v);
}

int process_decode(const char *bytes, size_t n, struct process *ret_p)
{
    struct wire_reader reader = { bytes, n };
    struct wire_field f;
    struct process p = { 0 };
    size_t argc = 0;
    int r;

    while ((r = wire_next(&reader, &f)) > 0) {
        r = decode_field(&p, &argc, &f);
        if (r < 0)
            break;
    }
    if (r < 0) {
        process_done(&p);
        return r;
    }
    if (p.exit_signal)
        p.exit_code = 128 + p.exit_signal;
    *ret_p = p;
    return 0;
}
