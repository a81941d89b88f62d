/* process_opts - what a command in a sandbox should be like: the options of `exec` and `run`,
 * and the request body that they and an argv become. Only what was given is sent. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "cli/opts.h"

struct process_opts {
    const char *user, *workdir, *label;
    struct opt_list env;
    struct opt_number timeout;
};

/* A login shell where argv is empty. With tty, TERM is passed in. */
int process_spec_json(const struct process_opts *opts, bool tty, int argc, char **argv,
                      json_t **ret_spec, struct err *err);

/* Say how a shell would run it, where all of a command line was one word and no such program is there. */
void process_hint(int status, int argc, char **argv);
