/* The commands of a sandbox, for E2B's clients. They know a process by its pid. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "front/e2b/birth.h"
#include "front/e2b/process.h"

#define TAG_PREFIX "e2b:" /* a tag is our label; labels of others are not tags */

/* ---- starting ---- */

static int put_env(struct process_spec *spec, const struct sandbox *s,
                   const Process__ProcessConfig *c)
{
    int r = envd_put_env(s, &spec->env);
    for (size_t i = 0; i < c->n_envs && r >= 0; i++)
        r = pairs_add(&spec->env, c->envs[i]->key, c->envs[i]->value);
    return r;
}

static int put_argv(struct process_spec *spec, const Process__ProcessConfig *c)
{
    spec->argv = calloc(c->n_args + 2, sizeof(*spec->argv));
    if (!spec->argv)
        return -ENOMEM;
    for (size_t i = 0; i <= c->n_args; i++) {
        spec->argv[i] = strdup(i ? c->args[i - 1] : c->cmd);
        if (!spec->argv[i])
            return -ENOMEM;
        spec->argc++;
    }
    return 0;
}

static int fill_spec(const struct connect_call *call, const struct envd *envd,
                     struct process_spec *spec, struct err *err)
{
    const Process__StartRequest *q = (const Process__StartRequest *)call->msg;
    const Process__ProcessConfig *c = q->process;
    if (!c || !*c->cmd)
        return err_fail(err, FAIL_MISSING_FIELD, "process.cmd is missing");
    int r = put_argv(spec, c);
    if (r >= 0)
        r = put_env(spec, &envd->s, c);
    if (r >= 0 && c->has_cwd_case && *c->cwd && !(spec->cwd = strdup(c->cwd)))
        r = -ENOMEM;
    if (r >= 0 && *envd->user && !(spec->user = strdup(envd->user)))
        r = -ENOMEM;
    if (r >= 0 && q->has_tag_case && asprintf(&spec->label, TAG_PREFIX "%s", q->tag) < 0)
        r = -ENOMEM;
    if (r < 0)
        return err_set(err, -r, "cannot allocate a command");
    r = envd_timeout_ms(call->req, &spec->timeout_ms, err);
    if (r < 0)
        return r;
    spec->pty = q->has_pty_case != 0;
    if (spec->pty && q->pty->size) {
        spec->rows = q->pty->size->rows;
        spec->cols = q->pty->size->cols;
    }
    spec->stdin_open = !spec->pty && (!q->has_stdin_case || q->stdin);
    spec->together = !spec->pty && !spec->stdin_open; /* others may be fed once they are told of */
    return 0;
}

int envd_process_start(struct request *req, struct err *err)
{
    _cleanup_(envd_leave) struct envd envd = { 0 };
    _cleanup_(connect_done) struct connect_call call = { 0 };
    _cleanup_(process_spec_done) struct process_spec spec = { 0 };
    _cleanup_(process_stream_freep) struct process_stream *stream = NULL;
    _cleanup_(process_done) struct process p = { 0 };

    int r = envd_begin(req, &process__start_request__descriptor, true, &envd, &call, err);
    if (r != 0)
        return r < 0 ? r : 0;
    r = fill_spec(&call, &envd, &spec, err);
    if (r >= 0)
        r = process_start(req->core, &envd.s, &spec, &stream, &p, err);
    if (r < 0)
        return envd_fail(&envd, &call, err);
    envd.birth = birth_files(req->core, &envd.s);
    return envd_stream_process(&call, &envd, take_ptr(stream), &p, 0);
}

/* ---- which one ---- */

static bool is_selected(const struct process *p, const Process__ProcessSelector *s)
{
    if (s->selector_case == PROCESS__PROCESS_SELECTOR__SELECTOR_PID)
        return p->tracked && p->pid == s->pid;
    size_t n = strlen(TAG_PREFIX);
    return p->tracked && p->label && strncmp(p->label, TAG_PREFIX, n) == 0 &&
           strcmp(p->label + n, s->tag) == 0;
}

/* A pid may have been used twice: the one that runs, or else the newest. */
int envd_select_process(const struct envd *envd, const Process__ProcessSelector *s,
                        uint64_t *ret_proc, bool *ret_pty, struct err *err)
{
    if (!s || s->selector_case == PROCESS__PROCESS_SELECTOR__SELECTOR__NOT_SET)
        return err_fail(err, FAIL_MISSING_FIELD, "process is missing");
    struct process *ps = NULL;
    size_t n = 0;
    int r = process_list(envd->core, &envd->s, false, &ps, &n, err);
    if (r < 0)
        return r;
    const struct process *found = NULL;
    for (size_t i = 0; i < n; i++)
        if (is_selected(&ps[i], s) && (!found || found->ended))
            found = &ps[i];
    if (found) {
        *ret_proc = found->proc;
        *ret_pty = found->pty;
    }
    process_list_free(ps, n);
    if (found)
        return 0;
    if (s->selector_case == PROCESS__PROCESS_SELECTOR__SELECTOR_TAG)
        return err_fail(err, FAIL_PROCESS_NOT_FOUND, "process with tag %.64s not found", s->tag);
    return err_fail(err, FAIL_PROCESS_NOT_FOUND, "process with pid %u not found", s->pid);
}

int envd_process_connect(struct request *req, struct err *err)
{
    _cleanup_(envd_leave) struct envd envd = { 0 };
    _cleanup_(connect_done) struct connect_call call = { 0 };
    _cleanup_(process_stream_freep) struct process_stream *stream = NULL;
    _cleanup_(process_done) struct process p = { 0 };
    uint64_t proc;
    bool pty;
    int64_t timeout_ms;

    int r = envd_begin(req, &process__connect_request__descriptor, true, &envd, &call, err);
    if (r != 0)
        return r < 0 ? r : 0;
    const Process__ConnectRequest *q = (const Process__ConnectRequest *)call.msg;
    r = envd_timeout_ms(req, &timeout_ms, err);
    if (r >= 0)
        r = envd_select_process(&envd, q->process, &proc, &pty, err);
    if (r >= 0)
        r = process_attach(req->core, &envd.s, proc, 0, false, &stream, &p, err);
    if (r < 0)
        return envd_fail(&envd, &call, err);
    return envd_stream_process(&call, &envd, take_ptr(stream), &p, timeout_ms);
}

/* ---- the short ones ---- */

/* What is common to all that pick a process, do one thing and answer nothing. */
typedef int (*act_fn)(const struct envd *envd, uint64_t proc, bool pty, const ProtobufCMessage *q,
                      struct err *err);

static int act(struct request *req, const ProtobufCMessageDescriptor *d, act_fn fn,
               const ProtobufCMessage *answer, struct err *err)
{
    _cleanup_(envd_leave) struct envd envd = { 0 };
    _cleanup_(connect_done) struct connect_call call = { 0 };
    uint64_t proc;
    bool pty;

    int r = envd_begin(req, d, false, &envd, &call, err);
    if (r != 0)
        return r < 0 ? r : 0;
    /* Each of these messages begins with its selector. */
    const Process__ConnectRequest *q = (const Process__ConnectRequest *)call.msg;
    r = envd_select_process(&envd, q->process, &proc, &pty, err);
    if (r >= 0)
        r = fn(&envd, proc, pty, call.msg, err);
    return r < 0 ? envd_fail(&envd, &call, err) : connect_reply(&call, answer);
}

static int resize(const struct envd *envd, uint64_t proc, bool pty, const ProtobufCMessage *m,
                  struct err *err)
{
    const Process__UpdateRequest *q = (const Process__UpdateRequest *)m;
    if (!q->has_pty_case || !q->pty->size)
        return 0;
    return process_resize(envd->core, &envd->s, proc, q->pty->size->rows, q->pty->size->cols, err);
}

int envd_process_update(struct request *req, struct err *err)
{
    static const Process__UpdateResponse none = PROCESS__UPDATE_RESPONSE__INIT;
    return act(req, &process__update_request__descriptor, resize, &none.base, err);
}

int envd_input_bytes(const Process__ProcessInput *input, bool pty,
                     const ProtobufCBinaryData **ret_bytes, struct err *err)
{
    if (!input || !input->input_case)
        return err_fail(err, FAIL_MISSING_FIELD, "input is missing");
    bool for_pty = input->input_case == PROCESS__PROCESS_INPUT__INPUT_PTY;
    if (for_pty != pty)
        return err_set(err, EINVAL,
                       pty ? "tty assigned to process, cannot write to stdin"
                           : "tty not assigned to process");
    *ret_bytes = for_pty ? &input->pty : &input->stdin;
    return 0;
}

static int feed(const struct envd *envd, uint64_t proc, bool pty, const ProtobufCMessage *m,
                struct err *err)
{
    const Process__SendInputRequest *q = (const Process__SendInputRequest *)m;
    const ProtobufCBinaryData *b;
    int r = envd_input_bytes(q->input, pty, &b, err);
    return r < 0 ? r : process_write(envd->core, &envd->s, proc, b->data, b->len, err);
}

int envd_process_input(struct request *req, struct err *err)
{
    static const Process__SendInputResponse none = PROCESS__SEND_INPUT_RESPONSE__INIT;
    return act(req, &process__send_input_request__descriptor, feed, &none.base, err);
}

static int close_stdin(const struct envd *envd, uint64_t proc, bool pty, const ProtobufCMessage *m,
                       struct err *err)
{
    int r = process_close_stdin(envd->core, &envd->s, proc, err);
    return r == -EPIPE ? 0 : r; /* closed already */
}

int envd_process_close_stdin(struct request *req, struct err *err)
{
    static const Process__CloseStdinResponse none = PROCESS__CLOSE_STDIN_RESPONSE__INIT;
    return act(req, &process__close_stdin_request__descriptor, close_stdin, &none.base, err);
}

static int send_signal(const struct envd *envd, uint64_t proc, bool pty, const ProtobufCMessage *m,
                       struct err *err)
{
    const Process__SendSignalRequest *q = (const Process__SendSignalRequest *)m;
    if (q->signal != PROCESS__SIGNAL__SIGNAL_SIGKILL &&
        q->signal != PROCESS__SIGNAL__SIGNAL_SIGTERM)
        return err_fail(err, FAIL_NOT_SUPPORTED, "signal %d is not supported", (int)q->signal);
    return process_signal(envd->core, &envd->s, proc, (int)q->signal, WIRE_SCOPE_TREE, err);
}

int envd_process_signal(struct request *req, struct err *err)
{
    static const Process__SendSignalResponse none = PROCESS__SEND_SIGNAL_RESPONSE__INIT;
    return act(req, &process__send_signal_request__descriptor, send_signal, &none.base, err);
}

/* ---- the list ---- */

static size_t count_args(char *const *argv)
{
    size_t n = 0;
    while (argv && argv[n])
        n++;
    return n;
}

int envd_process_list(struct request *req, struct err *err)
{
    _cleanup_(envd_leave) struct envd envd = { 0 };
    _cleanup_(connect_done) struct connect_call call = { 0 };
    struct process *ps = NULL;
    size_t n = 0, shown = 0;

    int r = envd_begin(req, &process__list_request__descriptor, false, &envd, &call, err);
    if (r != 0)
        return r < 0 ? r : 0;
    r = process_list(req->core, &envd.s, false, &ps, &n, err);
    if (r < 0)
        return envd_fail(&envd, &call, err);

    Process__ListResponse answer = PROCESS__LIST_RESPONSE__INIT;
    _cleanup_free_ Process__ProcessInfo *infos = calloc(n + 1, sizeof(*infos));
    _cleanup_free_ Process__ProcessConfig *configs = calloc(n + 1, sizeof(*configs));
    _cleanup_free_ Process__ProcessInfo **pointers = calloc(n + 1, sizeof(*pointers));
    for (size_t i = 0; infos && configs && pointers && i < n; i++) {
        size_t argc = count_args(ps[i].argv), prefix = strlen(TAG_PREFIX);
        if (ps[i].ended || argc == 0)
            continue;
        process__process_info__init(&infos[shown]);
        process__process_config__init(&configs[shown]);
        configs[shown].cmd = ps[i].argv[0];
        configs[shown].args = ps[i].argv + 1;
        configs[shown].n_args = argc - 1;
        infos[shown].config = &configs[shown];
        infos[shown].pid = (uint32_t)ps[i].pid;
        if (ps[i].label && strncmp(ps[i].label, TAG_PREFIX, prefix) == 0) {
            infos[shown].has_tag_case = PROCESS__PROCESS_INFO__HAS_TAG_TAG;
            infos[shown].tag = ps[i].label + prefix;
        }
        pointers[shown] = &infos[shown];
        shown++;
    }
    answer.processes = pointers;
    answer.n_processes = shown;
    r = infos && configs && pointers ? connect_reply(&call, &answer.base) : -ENOMEM;
    process_list_free(ps, n);
    return r;
}
