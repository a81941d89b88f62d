#include <errno.h>

#include "core/process.h"
#include "core/init_conn.h"
#include "core/process_decode.h"

#define LIST_MAX 65536 /* twice the largest pids limit of a sandbox */
#define LIST_BYTES_MAX (32u * 1024 * 1024)

/* Calls `take` for each process until it returns non-zero. */
static int list_each(struct core *core, const struct sandbox *s, bool all,
                     int (*take)(struct process *p, void *arg), void *arg, struct err *err)
{
    _cleanup_(init_conn_done) struct init_conn c = { .fd = -1 };
    _cleanup_(buf_done) struct buf b = BUF_INIT(256);
    size_t bytes = 0;

    int r = init_conn_open(core_run_dir(core), s->id, &c, err);
    if (r < 0)
        return r;
    r = wire_put_u64(&b, WIRE_T_FLAGS, all ? WIRE_F_ALL : 0);
    if (r >= 0)
        r = init_conn_begin(&c, WIRE_LIST, b.data, b.len, INIT_ANSWER_MS);
    while (r >= 0) {
        struct init_frame f;
        r = init_conn_recv(&c, INIT_ANSWER_MS, -1, &f);
        if (r < 0)
            break;
        if (f.h.type == WIRE_OK)
            return 0;
        if (f.h.type == WIRE_ERROR)
            return init_conn_error(&f, err);
        bytes += f.h.len;
        if (f.h.type != WIRE_PROCESS || bytes > LIST_BYTES_MAX) {
            r = -EPROTO;
            break;
        }
        struct process p;
        r = process_decode(f.p, f.h.len, &p);
        if (r < 0)
            break;
        r = take(&p, arg);
        if (r > 0)
            return 0;
    }
    return init_conn_lost(err, r, s->id);
}

struct list {
    struct process *ps;
    size_t n, room;
};

static int list_take(struct process *p, void *arg)
{
    struct list *l = arg;
    if (l->n == l->room) {
        size_t room = l->room ? l->room * 2 : 16;
        struct process *grown = l->n < LIST_MAX ? realloc(l->ps, room * sizeof(*grown)) : NULL;
        if (!grown) {
            process_done(p);
            return l->n < LIST_MAX ? -ENOMEM : -EPROTO;
        }
        l->ps = grown;
        l->room = room;
    }
    l->ps[l->n++] = *p;
    return 0;
}

int process_list(struct core *core, const struct sandbox *s, bool all, struct process **ret_ps,
                 size_t *ret_n, struct err *err)
{
    struct list l = { 0 };
    int r = list_each(core, s, all, list_take, &l, err);
    if (r < 0) {
        process_list_free(l.ps, l.n);
        return r;
    }
    *ret_ps = l.ps;
    *ret_n = l.n;
    return 0;
}

struct wanted {
    uint64_t proc;
    struct process p;
    bool found;
};

static int wanted_take(struct process *p, void *arg)
{
    struct wanted *w = arg;
    if (!p->tracked || p->proc != w->proc) {
        process_done(p);
        return 0;
    }
    w->p = *p;
    w->found = true;
    return 1;
}

int process_get(struct core *core, const struct sandbox *s, uint64_t proc, struct process *ret_p,
                struct err *err)
{
    struct wanted w = { .proc = proc };
    int r = list_each(core, s, false, wanted_take, &w, err);
    if (r < 0)
        return r;
    if (!w.found)
        return err_fail(err, FAIL_PROCESS_NOT_FOUND, "sandbox '%s' has no process %llu", s->id,
                        (unsigned long long)proc);
    *ret_p = w.p;
    return 0;
}
