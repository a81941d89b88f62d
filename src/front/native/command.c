#include <errno.h>
#include <string.h>

#include "front/http/fields.h"
#include "front/native/native.h"

#define OUTPUT_LIMIT (8u * 1024 * 1024)
#define OUTPUT_LIMIT_MAX (16u * 1024 * 1024)
#define TIMEOUT_MAX_S (366.0 * 86400)

struct ask {
    char **argv;
    char *shell, *cwd, *user, *label, *stdin_text;
    struct pairs env;
    int64_t timeout_ms;
    uint64_t output_limit;
    bool stdin_open, pty;
    uint32_t rows, cols;
};

static int as_pty(const json_t *v, const struct field *f, void *at, struct err *err);

#define ROW(member_, name_, ...) FIELD(struct ask, member_, name_, __VA_ARGS__)
#define ROWS_OF_BOTH                                                                     \
    ROW(argv, "argv", as_texts), ROW(shell, "shell", as_text),                           \
        ROW(cwd, "cwd", as_text, .max = 4096, .null_ok = true), ROW(env, "env", as_env), \
        ROW(user, "user", as_text, .max = 256, .null_ok = true),                         \
        ROW(timeout_ms, "timeout_s", as_seconds, .max = TIMEOUT_MAX_S, .null_ok = true), \
        ROW(label, "label", as_text, .max = 256, .null_ok = true)

static const struct field exec_fields[] = {
    ROWS_OF_BOTH,
    ROW(stdin_text, "stdin", as_text, .null_ok = true),
    ROW(output_limit, "output_limit", as_u64, .max = OUTPUT_LIMIT_MAX),
};
static const struct field start_fields[] = {
    ROWS_OF_BOTH,
    ROW(stdin_open, "stdin", as_bool, .null_ok = true),
    ROW(pty, "pty", as_pty, .null_ok = true),
};

static const struct field pty_fields[] = {
    ROW(rows, "rows", as_u32, .min = 1, .max = 65535),
    ROW(cols, "cols", as_u32, .min = 1, .max = 65535),
};

static int as_pty(const json_t *v, const struct field *f, void *at, struct err *err)
{
    struct ask *ask = container_of(at, struct ask, pty);
    uint32_t seen;
    if (!json_is_object(v))
        return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be an object of rows and cols",
                        f->name);
    ask->pty = true;
    return fields_decode(v, pty_fields, ARRAY_LEN(pty_fields), ask, &seen, err);
}

static void ask_done(struct ask *a)
{
    for (char **p = a->argv; p && *p; p++)
        free(*p);
    free(a->argv);
    free(a->shell);
    free(a->cwd);
    free(a->user);
    free(a->label);
    free(a->stdin_text);
    pairs_done(&a->env);
}

static int shell_argv(struct ask *a, struct err *err)
{
    char **argv = calloc(4, sizeof(*argv));
    char *sh = strdup("/bin/sh"), *c = strdup("-c");
    if (!argv || !sh || !c) {
        free(argv);
        free(sh);
        free(c);
        return err_set(err, ENOMEM, "cannot allocate a command");
    }
    argv[0] = sh;
    argv[1] = c;
    argv[2] = take_ptr(a->shell);
    a->argv = argv;
    return 0;
}

static int check_ask(struct ask *a, struct err *err)
{
    if (!a->argv && !a->shell)
        return err_fail(err, FAIL_MISSING_FIELD, "'argv' or 'shell' is needed");
    if (a->argv && a->shell)
        return err_fail(err, FAIL_INVALID_FIELD, "'argv' and 'shell' exclude each other");
    if (a->argv && a->argv[0][0] == '\0')
        return err_fail(err, FAIL_INVALID_FIELD, "'argv' must begin with a program");
    if (a->cwd && a->cwd[0] != '/')
        return err_fail(err, FAIL_INVALID_FIELD, "'cwd' must be an absolute path");
    return a->shell ? shell_argv(a, err) : 0;
}

int native_command_read(struct request *req, bool wait, struct native_command *ret_cmd,
                        struct err *err)
{
    _cleanup_(ask_done) struct ask a = { .output_limit = OUTPUT_LIMIT, .rows = 24, .cols = 80 };
    _cleanup_json_ json_t *object = NULL;
    uint32_t seen;

    int r = request_json(req, &object, err);
    if (r >= 0 && wait)
        r = fields_decode(object, exec_fields, ARRAY_LEN(exec_fields), &a, &seen, err);
    else if (r >= 0)
        r = fields_decode(object, start_fields, ARRAY_LEN(start_fields), &a, &seen, err);
    if (r >= 0)
        r = check_ask(&a, err);
    if (r < 0)
        return r;
    *ret_cmd = (struct native_command){
        .spec = {
            .argv = take_ptr(a.argv),
            .env = a.env,
            .cwd = take_ptr(a.cwd),
            .user = take_ptr(a.user),
            .label = take_ptr(a.label),
            .pty = a.pty,
            .stdin_open = a.stdin_open || a.stdin_text,
            .rows = a.rows,
            .cols = a.cols,
            .timeout_ms = a.timeout_ms,
        },
        .stdin_text = take_ptr(a.stdin_text),
        .output_limit = a.output_limit,
    };
    a.env = (struct pairs){ 0 };
    for (char **p = ret_cmd->spec.argv; *p; p++)
        ret_cmd->spec.argc++;
    return 0;
}

void native_command_done(struct native_command *cmd)
{
    process_spec_done(&cmd->spec);
    free(cmd->stdin_text);
    cmd->stdin_text = NULL;
}
