/* cli - what a command is, and what it is given to work with.
 *
 * Commands are rows of one table (commands.c). Finding one, its options, its help and its
 * completion all come from its row; the row's function does the work and returns the exit
 * status. The client is made when first asked for, so that help needs no daemon. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/client.h"
#include "cli/opts.h"

#define STATUS_USAGE 2    /* the words on the command line make no sense */
#define STATUS_WARREN 125 /* run, exec, shell: warren itself failed */
#define STATUS_NOT_EXECUTABLE 126
#define STATUS_NOT_FOUND 127

struct cli {
    const char *socket, *url, *key, *team, *context; /* --socket, --url, --key, --team, --context */
    const char *color;                               /* --color */
    bool json, help, version;
    const struct command *command;
    struct client *client; /* cli_client */
};

struct example {
    const char *what, *line;
};

struct command {
    const char *name;  /* one word, or two: "image ls" */
    const char *alias; /* NULL: none */
    const char *summary;
    const char *synopsis;           /* what follows the name */
    const char *description;        /* paragraphs, a blank line between */
    const char *exit_status;        /* NULL: the usual; else lines "N  meaning" */
    const struct example *examples; /* ends with a NULL line */
    const struct opt *opts;
    size_t nopts, opts_size; /* rows; bytes of the struct they fill */
    int stop_after;          /* operands before options stop, or OPTS_ALL */
    int min_args, max_args;  /* -1: any number */
    const char *operands;    /* completion: as struct opt's values */
    int fail_status;         /* 0: 1, and 2 for usage */
    bool hidden;             /* not in lists */
    int (*run)(struct cli *cli, const void *opts, int argc, char **argv);
};

#define COMMAND_OPTS(table_, type_) \
    .opts = (table_), .nopts = ARRAY_LEN(table_), .opts_size = sizeof(type_)

/* commands.c */
extern const struct command *const commands[];
extern const size_t commands_n;
extern const struct opt global_opts[];
extern const size_t global_opts_n;
/* The command argv begins with; *ret_words is how many words its name took. NULL: none. */
const struct command *command_find(int argc, char **argv, int *ret_words);

/* cli.c */
int cli_main(int argc, char **argv);
/* The client; on failure NULL, and the reason is in err. */
struct client *cli_client(struct cli *cli, struct err *err);
/* Say what failed on stderr and return the command's exit status for it. */
int cli_fail(const struct cli *cli, const struct err *err);
int cli_usage(const struct cli *cli, const char *fmt, ...) _printf_(2, 3);
void cli_note(const char *fmt, ...) _printf_(1, 2); /* "warren: ..." on stderr, made harmless */
void cli_print_json(const json_t *v);
/* An answer: as JSON if that is asked for, else its member `name` on a line. */
void cli_print_answer(const struct cli *cli, const json_t *answer, const char *name);
/* client_call on the command's client. */
int cli_call(struct cli *cli, const char *method, const char *path, const json_t *body,
             json_t **ret_json, struct err *err);
/* The same, with the API's code for a failure. */
int cli_call_code(struct cli *cli, const char *method, const char *path, const json_t *body,
                  json_t **ret_json, char ret_code[REQUEST_CODE_MAX], struct err *err);
/* POST without a body; prints the id of what it answers. */
int cli_ask(struct cli *cli, const char *path, struct err *err);
/* Do the same for each operand; goes on after a failure. Returns the exit status. */
int cli_each(struct cli *cli, int argc, char **argv,
             int (*one)(struct cli *cli, const char *arg, const void *opts, struct err *err),
             const void *opts);
/* DELETE /v1/COLLECTION/NAME for each operand, and its name printed. Returns the exit status. */
int cli_remove(struct cli *cli, const char *collection, int argc, char **argv);
int cli_remove_below(struct cli *cli, const char *path, int argc, char **argv); /* PATH/NAME */
/* GET /v1/COLLECTION/NAME, printed as JSON. Returns the exit status. */
int cli_show(struct cli *cli, const char *collection, const char *name);

#define _cleanup_json_ _cleanup_(json_decrefp)

/* help.c */
void help_overview(FILE *out);
void help_screen(FILE *out); /* the commands by what one wants of them, on 40 lines of 80 columns */
/* The commands whose name begins with argv[0], for who typed no more or something else; -ENOENT: none. */
int help_group(int argc, char **argv);
void help_command(FILE *out, const struct command *command);

/* completion.c */
int completion_print(FILE *out, const char *shell); /* -EINVAL for an unknown one */
