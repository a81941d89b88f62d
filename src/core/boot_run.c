/* Starting what a template starts, and waiting for it to be ready. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "core/boot.h"
#include "core/inside.h"
#include "core/private.h"
#include "core/process.h"

#define PAUSE_FIRST_MS 20 /* between two tries; doubled up to PAUSE_MAX_MS */
#define PAUSE_MAX_MS 500
#define TRY_MS 10000   /* one try of a command, or half the time there is: some only sleep */
#define GRACE_MS 100   /* for output that is on its way */
#define OUTPUT_END 240 /* bytes of output that a failure shows */

struct run {
    struct core *core;
    const struct sandbox *s;
    const struct boot *boot;
    const _Atomic bool *cancel;
    int64_t until_ms;
    struct process_stream *start; /* of the start command; NULL: none, or it has ended */
    uint64_t proc;
    char output[OUTPUT_END + 1]; /* the end of what failed last said */
    size_t n;
};

static bool cancelled(const struct run *run)
{
    return atomic_load(&run->core->stopping) || (run->cancel && atomic_load(run->cancel));
}

/* Keeps the last bytes, made fit for a sentence. */
static void keep(struct run *run, const char *p, size_t n)
{
    if (n > OUTPUT_END) {
        p += n - OUTPUT_END;
        n = OUTPUT_END;
    }
    size_t drop = run->n + n > OUTPUT_END ? run->n + n - OUTPUT_END : 0;
    memmove(run->output, run->output + drop, run->n - drop);
    run->n -= drop;
    for (size_t i = 0; i < n; i++) {
        bool plain = (unsigned char)p[i] >= ' ' && p[i] != 0x7f;
        run->output[run->n++] = plain ? p[i] : ' ';
    }
    run->output[run->n] = '\0';
}

/* What the start command has said so far, or rather the end of it. */
static void fetch_output(struct run *run)
{
    _cleanup_(process_stream_freep) struct process_stream *st = NULL;
    struct process p;
    if (run->proc == 0 || process_get(run->core, run->s, run->proc, &p, NULL) < 0)
        return;
    uint64_t since = p.output_bytes > OUTPUT_END ? p.output_bytes - OUTPUT_END : 0;
    process_done(&p);
    if (process_attach(run->core, run->s, run->proc, since, false, &st, NULL, NULL) < 0)
        return;
    run->n = 0;
    struct process_event ev;
    for (int i = 0; i < 64 && process_next(st, GRACE_MS, -1, &ev, NULL) > 0; i++) {
        if (ev.type == PROCESS_OUTPUT)
            keep(run, ev.data, ev.len);
        if (ev.type == PROCESS_ENDED) {
            process_done(&ev.ended);
            break;
        }
    }
}

static int not_ready(struct run *run, const char *why, struct err *err)
{
    run->output[run->n] = '\0';
    fetch_output(run);
    return err_fail(err, FAIL_TEMPLATE_NOT_READY, "%s%s%s", why,
                    run->n ? "; its output ends: " : "", run->output);
}

/* ---- the start command ---- */

static int start(struct run *run, bool told, struct err *err)
{
    struct process_spec spec = {
        .argv = run->boot->argv, .label = (char[]){ "start" }, .no_output = true, .own = true
    };
    struct process p = { 0 };
    int r = process_start(run->core, run->s, &spec, &run->start, &p, err);
    if (r < 0)
        return r;
    run->proc = p.proc;
    if (told)
        process_watch(run->core, run->s, &p, NULL);
    process_done(&p);
    return 0;
}

/* Waits a little; -ETIME when the start command failed meanwhile, which ends all hope. */
static int pause_for(struct run *run, int ms, struct err *err)
{
    struct process_event ev;
    if (!run->start) {
        (void)poll(NULL, 0, ms);
        return 0;
    }
    int r = process_next(run->start, ms, -1, &ev, err);
    if (r == -ETIMEDOUT)
        return 0;
    if (r < 0)
        return r;
    if (ev.type != PROCESS_ENDED)
        return 0;
    int code = ev.ended.exit_code;
    process_done(&ev.ended);
    process_stream_free(take_ptr(run->start));
    if (code == 0)
        return 0; /* it left something behind, or all it had to do is done */
    char why[96];
    (void)snprintf(why, sizeof(why), "the start command ended with %d before it was ready", code);
    return not_ready(run, why, err);
}

/* ---- probes: 1 ready, 0 not yet, below zero hopeless ---- */

static int try_command(struct run *run, struct err *err)
{
    _cleanup_(process_stream_freep) struct process_stream *st = NULL;
    int64_t half = run->boot->timeout_ms / 2, most = half > TRY_MS ? half : TRY_MS;
    int64_t until = clock_mono_ms() + most;
    struct process_spec spec = {
        .argv = run->boot->ready_argv, .label = (char[]){ "ready" }, .timeout_ms = most, .own = true
    };
    struct process_event ev;
    int r = process_start(run->core, run->s, &spec, &st, NULL, err);
    if (r < 0)
        return r; /* a program that is not there will not come */
    run->n = 0;
    for (;;) {
        r = process_next(st, PAUSE_MAX_MS, -1, &ev, err);
        if (r == -ETIMEDOUT && clock_mono_ms() < until && !cancelled(run))
            continue;
        if (r < 0)
            return r == -ETIMEDOUT ? 0 : r;
        if (ev.type == PROCESS_OUTPUT)
            keep(run, ev.data, ev.len);
        if (ev.type == PROCESS_ENDED) {
            int code = ev.ended.exit_code;
            process_done(&ev.ended);
            return code == 0;
        }
    }
}

static int try_once(struct run *run, struct err *err)
{
    const struct boot *b = run->boot;
    uint64_t status = 0;
    switch (b->ready) {
    case READY_AT_ONCE: return 1;
    case READY_COMMAND: return try_command(run, err);
    case READY_PORT: return inside_probe(run->core, run->s->id, b->port, NULL, &status) >= 0;
    case READY_HTTP:
        return inside_probe(run->core, run->s->id, b->port, b->path, &status) >= 0 &&
               status == b->status;
    }
    return -EINVAL;
}

static int wait_ready(struct run *run, struct err *err)
{
    int pause = PAUSE_FIRST_MS;
    for (;;) {
        int r = try_once(run, err);
        if (r != 0)
            return r;
        if (cancelled(run))
            return err_fail_as(err, ECANCELED, FAIL_SANDBOX_BUSY,
                               "given up: something else came first");
        if (clock_mono_ms() >= run->until_ms) {
            char why[96];
            (void)snprintf(why, sizeof(why), "it was not ready after %lld s",
                           (long long)(run->boot->timeout_ms / 1000));
            return not_ready(run, why, err);
        }
        r = pause_for(run, pause, err);
        if (r < 0)
            return r;
        pause = pause * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause * 2;
    }
}

int boot_run(struct core *core, const struct sandbox *s, bool told, const _Atomic bool *cancel,
             struct err *err)
{
    const struct boot *b = &s->spec.boot;
    struct run run = { .core = core, .s = s, .boot = b, .cancel = cancel };
    run.until_ms = clock_mono_ms() + (b->timeout_ms ? b->timeout_ms : BOOT_TIMEOUT_MS);
    int r = b->argv ? start(&run, told, err) : 0;
    if (r >= 0)
        r = wait_ready(&run, err);
    process_stream_free(run.start);
    return r < 0 ? r : 0;
}
