#include "cli/process_opts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/object.h"

#define LOGIN_SHELL "if command -v bash >/dev/null 2>&1; then exec bash -l; else exec sh -l; fi"
#define TERM_MAX 64 /* the longest name terminfo has is 40 */

static const char *terminal_name(void)
{
    const char *t = getenv("TERM");
    if (!t || !*t || strlen(t) > TERM_MAX)
        return "xterm";
    for (const char *p = t; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("-+._", *p))
            return "xterm";
    return t;
}

int process_spec_json(const struct process_opts *opts, bool tty, int argc, char **argv,
                      json_t **ret_spec, struct err *err)
{
    _cleanup_json_ json_t *o = json_object();
    int r = 0;
    if (argc == 0) {
        r = object_text(o, "shell", LOGIN_SHELL, err);
    } else {
        json_t *list = json_array();
        (void)json_object_set_new(o, "argv", list);
        for (int i = 0; i < argc && r == 0; i++)
            r = list_text(list, argv[i], err);
    }
    if (r == 0 && opts->workdir)
        r = object_text(o, "cwd", opts->workdir, err);
    if (r == 0 && opts->user)
        r = object_text(o, "user", opts->user, err);
    if (r == 0 && opts->label)
        r = object_text(o, "label", opts->label, err);
    if (tty) {
        json_t *env = json_object();
        (void)json_object_set_new(env, "TERM", json_string(terminal_name()));
        (void)json_object_set_new(o, "env", env);
    }
    if (r == 0)
        r = object_pairs(o, "env", opts->env.items, opts->env.n, err);
    if (r < 0)
        return r;
    if (opts->timeout.set && opts->timeout.v > 0)
        (void)json_object_set_new(o, "timeout_s",
                                  opts->timeout.v % 1000 ? json_real((double)opts->timeout.v / 1000)
                                                         : json_integer(opts->timeout.v / 1000));
    *ret_spec = take_ptr(o);
    return 0;
}

void process_hint(int status, int argc, char **argv)
{
    if (status == STATUS_NOT_FOUND && argc == 1 && strpbrk(argv[0], " \t"))
        cli_note("'%s' was looked for as one program; a shell reads it as a command: sh -c '%s'",
                 argv[0], argv[0]);
}
