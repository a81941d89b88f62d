/* attack - shared by the files of `warren attack`: a stage of throw-away teams and sandboxes,
 * attempts, and their results.
 *
 * An attempt from outside is a row of its category's table here; one from inside is a row of the
 * program in src/attack/, which is embedded in the CLI and put into the sandboxes. Everything is
 * made for the run, in two teams of its own, and removed at its end. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"

#define TRIAL_WHY_MAX 320
#define DELETE_LIMIT_MS 10000 /* a sandbox must be gone within this */

enum trial_verdict { TRIAL_HELD, TRIAL_BROKE, TRIAL_NOT_HERE, TRIAL_ERROR };

/* The result of one attempt. */
struct trial {
    enum trial_verdict verdict;
    bool said; /* a verdict was given */
    char why[TRIAL_WHY_MAX];
    int64_t took_ms;
    double p50, p99; /* a neighbour's exec during the attempt, relative to alone; 0: not measured */
    double p50_ms, p99_ms;
};

/* The first `broke` stays, as in src/attack/attempt.h. */
void trial_held(struct trial *t, const char *fmt, ...) _printf_(2, 3);
void trial_broke(struct trial *t, const char *fmt, ...) _printf_(2, 3);
void trial_not_here(struct trial *t, const char *fmt, ...) _printf_(2, 3);
void trial_error(struct trial *t, const char *fmt, ...) _printf_(2, 3); /* could not be tried */

/* A throw-away team with a key. */
struct side {
    char *team, *key;
    struct client *client;
};

struct attack {
    struct cli *cli;
    struct client *admin; /* the cli's own; borrowed */
    const char *image;
    bool harmful, stopped;     /* stopped: by a signal */
    char *url;                 /* http://HOST:PORT of the API; NULL: the admin socket alone */
    char *tag;                 /* begins every name that this run makes */
    struct side red, blue;     /* the attacker and the victim */
    char *box, *blue_box;      /* red's sandbox and blue's */
    char *volume, *volume_box; /* red's, made when first needed */
    char *secret_path;         /* a file on this host that nobody inside must see; NULL: remote */
    char secret[64];
};

struct attempt_row {
    const char *name, *category, *title;
    void (*run)(struct attack *a, const struct attempt_row *self, struct trial *t);
    bool harmful; /* could harm a vulnerable daemon: runs with --harmful only */
    const char *text, *more;
    long number;
};

struct attempt_table {
    const struct attempt_row *rows;
    size_t n;
};

extern const struct attempt_table attack_http, attack_api, attack_tenants, attack_files,
    attack_archives, attack_life, attack_egress, attack_host, attack_previews, attack_volumes,
    attack_absent;

/* ---- stage.c: teams and sandboxes ---- */

#define INSIDE_PATH "/tmp/warren-attack-inside"

/* Make the teams, their keys, and the file that must stay unseen. */
int stage_set(struct attack *a, struct err *err);
void stage_strike(struct attack *a, bool keep); /* remove everything, unless `keep` */
/* Make a sandbox with the program in it; `more` (taken; NULL: nothing) is merged into the
 * request. */
int stage_make(struct attack *a, const struct side *side, json_t *more, char **ret_id,
               struct err *err);
/* Red's sandbox, blue's, and red's with a volume; made on first use. NULL: the reason is in t. */
const char *stage_box(struct attack *a, struct trial *t);
const char *stage_blue_box(struct attack *a, struct trial *t);
const char *stage_volume_box(struct attack *a, struct trial *t);
/* Delete a sandbox; false and a `broke` if that is refused or takes too long. Takes *id. */
bool stage_delete(struct attack *a, const struct side *side, char **id, struct trial *t);

/* ---- talk.c: requests, with whatever answer comes ---- */

/* The status; 0: no answer within 60 s. Takes the body. */
long talk(struct client *c, const char *method, const char *path, json_t *body,
          json_t **ret_answer);
long talk_raw(struct client *c, const char *method, const char *path, const char *type,
              const void *bytes, size_t n, json_t **ret_answer);
/* The same for /v1/sandboxes/BOX followed by `rest`. */
long talk_box(struct client *c, const char *method, const char *box, const char *rest, json_t *body,
              json_t **ret_answer);
const char *talk_code(const json_t *answer); /* the error's code, or "" */
/* Run a command inside: its output (the caller frees it), or NULL. *ret_code: its exit code. */
char *talk_exec(struct client *c, const char *box, int *ret_code, const char *word, ...)
    __attribute__((sentinel));
/* Start the program inside with these words and wait for its first line (the caller frees it).
 * The process number, or below zero: -ECHILD, it ended before; -ETIMEDOUT, it said nothing. */
int64_t talk_start(struct client *c, const char *box, char **ret_line, const char *word, ...)
    __attribute__((sentinel));

/* ---- inside.c: attempts from inside ---- */

struct inside_row {
    char *name, *category, *title, *flags;
};
struct inside_list {
    struct inside_row *rows;
    size_t n;
};
/* Runs the program on this host to get its list. */
int inside_list(struct inside_list *ret_list, struct err *err);
void inside_list_done(struct inside_list *list);
void inside_run(struct attack *a, const struct inside_row *row, struct trial *t);
void shared_run(struct attack *a, const struct inside_row *row, struct trial *t);
extern const unsigned char attack_inside_text[];
extern const size_t attack_inside_size;

/* ---- latency.c: how long a neighbour's exec takes ---- */

struct latency {
    double p50_ms, p99_ms;
};
int latency_measure(struct attack *a, const char *box, struct latency *ret);
double latency_of_sorted(const double *sorted, size_t n, double part); /* part: 0.5, 0.99 */
int latency_compare(const void *a, const void *b);                     /* for qsort */

/* ---- report.c ---- */

struct report {
    bool json, terminal;
    json_t *attempts;
    size_t held, broke, not_here, errors, planned, done;
};
void report_begin(struct report *r, bool json, size_t planned);
void report_now(struct report *r, const char *name); /* the moving line */
void report_add(struct report *r, const char *name, const char *category, const char *title,
                const struct trial *t);
int report_end(struct report *r); /* prints; the exit status */
