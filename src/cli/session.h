/* session - one process in a sandbox, joined to our stdin, stdout, stderr and signals.
 *
 * One poll loop moves everything: output comes as a stream of lines on one connection; input,
 * window sizes and signals go out on another, one request at a time, so a process that does not
 * read holds our stdin back. The exit event ends it, never the end of a connection: when that
 * breaks, the stream is asked for again from the first byte that is missing. A person at a terminal may leave (cli/leave.h), or
 * lose the terminal: the process goes on. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"

struct session_config {
    const char *sandbox; /* id or name */
    bool tty;            /* the process has a terminal, and it is ours */
    bool input;          /* our stdin is its stdin */
    bool visitor;        /* attach: no signal touches the process */
    bool *ret_left;      /* or NULL: whether the person left, and the process goes on */
};

/* Run what spec says (argv or shell, env, cwd, user, timeout_s) to its end. Takes spec. Returns
 * the exit status to end with; what failed has been said. */
int session_run(struct cli *cli, const struct session_config *config, json_t *spec);
/* Join a process that runs, from the first byte still kept. */
int session_attach(struct cli *cli, const struct session_config *config, int64_t process);

/* Would reading our stdin give anything? A terminal, /dev/null and a closed one would not. */
bool session_has_piped_stdin(void);
/* Start it and leave it running: *ret_process is its object, the caller's. Takes spec. Returns the exit
 * status, 0 when it was started. */
int session_start(struct cli *cli, const char *sandbox, json_t *spec, json_t **ret_process);
/* The same run without streaming: prints the API's own answer (--json). Takes spec. */
int session_run_json(struct cli *cli, const char *sandbox, bool input, json_t *spec);
