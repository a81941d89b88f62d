#include <errno.h>
#include <string.h>

#include "core/build_private.h"

#define STEP_TIMEOUT_MS (3600 * 1000) /* of one RUN */
#define TAIL_BYTES 200 /* of its output, for the sentence that tells of its failure */
#define SCRIPT "/dev/shm/warren-build" /* memory of the cell's own: no layer has it */

/* The end of what a command printed. */
struct tail {
    char text[2 * TAIL_BYTES];
    size_t n;
};

static void tail_add(struct tail *t, const char *p, size_t n)
{
    if (n >= TAIL_BYTES) {
        p += n - TAIL_BYTES;
        n = TAIL_BYTES;
        t->n = 0;
    }
    if (t->n + n > sizeof(t->text)) {
        size_t keep = TAIL_BYTES;
        memmove(t->text, t->text + t->n - keep, keep);
        t->n = keep;
    }
    memcpy(t->text + t->n, p, n);
    t->n += n;
}

/* In one line, its last TAIL_BYTES. */
static const char *tail_text(struct tail *t, char out[TAIL_BYTES + 1])
{
    while (t->n && strchr("\r\n ", t->text[t->n - 1]))
        t->n--;
    size_t from = t->n > TAIL_BYTES ? t->n - TAIL_BYTES : 0, n = t->n - from;
    memcpy(out, t->text + from, n);
    out[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)out[i] < ' ')
            out[i] = ' ';
    return out;
}

static int tell_output(struct build *b, const struct process_event *ev, struct err *err)
{
    struct build_event out = { .type = BUILD_LOG,
                               .n = b->step,
                               .stream = ev->stream,
                               .text = malloc(ev->len + 1),
                               .len = ev->len };
    if (!out.text)
        return err_set(err, ENOMEM, "cannot keep a step's output");
    memcpy(out.text, ev->data, ev->len);
    out.text[ev->len] = '\0';
    int r = build_tell(b, &out);
    return r < 0 ? err_set(err, -r, "the build was cancelled") : 0;
}

/* Of a recipe's step in the words of E2B's builder, which programs look for. */
static int failed(struct build *b, const struct process *p, struct tail *tail, struct err *err)
{
    char said[TAIL_BYTES + 1], how[80];
    if (b->recipe && p->reason != WIRE_TIMEOUT)
        (void)process_status_text(p, how);
    else if (p->reason == WIRE_OOM)
        (void)snprintf(how, sizeof(how), "ran out of memory (%llu MiB)", BUILD_MEMORY >> 20);
    else if (p->reason == WIRE_TIMEOUT)
        (void)snprintf(how, sizeof(how), "did not end within %d s", STEP_TIMEOUT_MS / 1000);
    else if (p->exit_signal)
        (void)snprintf(how, sizeof(how), "was ended by %s", process_signal_name(p->exit_signal));
    else
        (void)snprintf(how, sizeof(how), "ended with exit code %d", p->exit_code);
    (void)tail_text(tail, said);
    const char *colon = *said ? ": " : "";
    if (b->recipe)
        return err_fail_as(err, ECHILD, FAIL_BUILD_FAILED, "%s%s%s", how, colon, said);
    return err_fail_as(err, ECHILD, FAIL_BUILD_FAILED, "step %u (line %u) %s%s%s", b->step, b->line,
                       how, colon, said);
}

static int watch(struct build *b, struct process_stream *stream, struct err *err)
{
    struct tail tail = { .n = 0 };
    for (;;) {
        struct process_event ev;
        int r = process_next(stream, -1, b->alive[0], &ev, err);
        if (r < 0)
            return r;
        if (ev.type == PROCESS_OUTPUT) {
            tail_add(&tail, ev.data, ev.len);
            r = tell_output(b, &ev, err);
        } else if (ev.type == PROCESS_ENDED) {
            bool well = ev.ended.reason == WIRE_EXIT && ev.ended.exit_code == 0;
            r = well ? 1 : failed(b, &ev.ended, &tail, err);
            process_done(&ev.ended);
        }
        if (r != 0)
            return r < 0 ? r : 0;
    }
}

/* A heredoc with an interpreter of its own is a program. */
static int put_script(struct build *b, struct build_cell *cell, const struct dockerfile_step *step,
                      struct err *err)
{
    const char *const path = SCRIPT;
    struct file_ask ask = { .op = WIRE_FILE_WRITE, .paths = &path, .n_paths = 1, .mode = 0755 };
    _cleanup_(file_call_freep) struct file_call *call = NULL;
    int r = file_begin(b->core, &cell->s, &ask, &call, err);
    if (r < 0)
        return r;
    r = file_put_data(call, step->heredocs[0].text, step->heredocs[0].len);
    if (r >= 0)
        r = file_put_end(call);
    if (r < 0 && r != -EPIPE)
        return err_set(err, -r, "cannot write a script");
    for (bool done = false; !done;) {
        struct file_event ev;
        r = file_next(call, -1, b->alive[0], &ev, err);
        if (r < 0)
            return r;
        done = ev.type == FILE_DONE;
        file_event_done(&ev);
    }
    return 0;
}

static int fill_spec(struct build *b, const struct build_stage *st,
                     const struct dockerfile_step *step, struct process_spec *spec)
{
    static const char *const script[] = { SCRIPT };
    struct dockerfile_step program = { .json = true, .words = (const char **)script, .n_words = 1 };
    const char *user = step->user ? step->user : st->config.user;
    const char *cwd = step->workdir ? step->workdir : st->config.workdir;
    int r = build_argv(st, step->script ? &program : step, &spec->argv);
    if (r >= 0)
        r = build_env(st, true, &spec->env);
    for (size_t i = 0; i < b->world.given.n && r >= 0; i++)
        if (scope_predefined(b->world.given.names[i]))
            r = pairs_add(&spec->env, b->world.given.names[i], b->world.given.values[i]);
    if (r < 0)
        return r;
    while (spec->argv[spec->argc])
        spec->argc++;
    spec->cwd = strdup(cwd && *cwd ? cwd : "/");
    spec->user = strdup(user && *user ? user : "root");
    spec->timeout_ms = STEP_TIMEOUT_MS;
    return spec->cwd && spec->user ? 0 : -ENOMEM;
}

static int run(struct build *b, struct build_stage *st, struct build_cell *cell,
               const struct dockerfile_step *step, struct err *err)
{
    _cleanup_(process_spec_done) struct process_spec spec = { 0 };
    _cleanup_(process_stream_freep) struct process_stream *stream = NULL;
    int r = fill_spec(b, st, step, &spec);
    if (r < 0)
        return err_set(err, -r, "cannot describe a step's command");
    if (step->script)
        r = put_script(b, cell, step, err);
    if (r >= 0)
        r = process_start(b->core, &cell->s, &spec, &stream, NULL, err);
    if (r < 0 && err->failure) { /* the program or the user is not there: the step's own fault */
        struct err why = *err;
        if (b->recipe && why.failure == FAIL_USER_NOT_FOUND)
            return err_fail_as(err, -r, FAIL_BUILD_FAILED,
                               "command failed: unauthenticated: invalid username: '%.100s'",
                               spec.user);
        return err_fail_as(err, -r, FAIL_BUILD_FAILED, "line %u: %.300s", b->line, why.msg);
    }
    return r < 0 ? r : watch(b, stream, err);
}

static int run_connected(struct build *b, struct build_stage *st, struct build_cell *cell,
                         const struct dockerfile_step *step, struct err *err)
{
    struct sandbox s = cell->s; /* borrowed */
    s.spec.network = b->network;
    int r = networks_attach(b->core, &s, err);
    if (r >= 0)
        r = run(b, st, cell, step, err);
    if (networks_has(&s.spec))
        networks_detach(b->core, s.id);
    return r;
}

/* The network is not in it: what a step makes shall not depend on that. */
static int key_of(struct build *b, const struct build_stage *st, const struct dockerfile_step *step,
                  char ret_key[DIGEST_SIZE], struct err *err)
{
    struct build_key key;
    struct pairs env;
    _cleanup_(strings_freep) char **argv = NULL;
    int r = build_argv(st, step, &argv);
    if (r >= 0)
        r = build_env(st, true, &env);
    if (r < 0)
        return err_set(err, -r, "cannot hash a step");
    build_key_begin(&key, b, "RUN", build_chain(st));
    build_key_number(&key, step->script);
    for (char **a = argv; *a; a++)
        build_key_text(&key, *a);
    build_key_number(&key, env.n);
    for (size_t i = 0; i < env.n; i++) {
        build_key_text(&key, env.names[i]);
        build_key_text(&key, env.values[i]);
    }
    build_key_text(&key, step->user ? step->user : st->config.user);
    build_key_text(&key, step->workdir ? step->workdir : st->config.workdir);
    pairs_done(&env);
    return build_key_end(&key, ret_key, err);
}

/* As docker writes it: the arguments in force, then the command. */
static char *created_by(const struct build_stage *st, const struct dockerfile_step *step)
{
    struct buf text = BUF_INIT(4 * DOCKERFILE_MAX);
    size_t n = 0;
    _cleanup_(strings_freep) char **argv = NULL;
    for (size_t i = 0; i < st->scope.args.n; i++)
        n += st->scope.args.values[i] != NULL;
    int r = build_argv(st, step, &argv);
    if (r >= 0)
        r = n ? buf_printf(&text, "RUN |%zu", n) : buf_puts(&text, "RUN");
    for (size_t i = 0; i < st->scope.args.n && r >= 0; i++)
        if (st->scope.args.values[i])
            r = buf_printf(&text, " %s=%s", st->scope.args.names[i], st->scope.args.values[i]);
    for (char **a = argv; r >= 0 && *a; a++)
        r = buf_printf(&text, " %s", *a);
    if (r < 0)
        buf_done(&text);
    return buf_steal(&text);
}

int build_exec(struct build *b, struct build_stage *st, const struct dockerfile_step *step,
               struct err *err)
{
    char key[DIGEST_SIZE];
    struct build_cell cell = { 0 };
    _cleanup_free_ char *made_by = created_by(st, step);
    if (!made_by)
        return err_set(err, ENOMEM, "cannot describe a step");
    int r = key_of(b, st, step, key, err);
    if (r >= 0)
        r = build_from_cache(b, st, key, made_by, err);
    if (r != 0)
        return r < 0 ? r : 0;
    r = build_work_cell(b, st, &cell, err);
    if (r >= 0)
        r = run_connected(b, st, &cell, step, err);
    if (r >= 0)
        r = build_commit(b, st, &cell, key, made_by, err);
    build_cell_done(b, &cell);
    return r;
}
