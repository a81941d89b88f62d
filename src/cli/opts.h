/* opts - a command's options as a table: parsing, help and completion all read it.
 *
 * A row says how an option is spelled, what kind of value it takes, and where in the command's
 * own struct that value goes. Long and short forms, "--name=value", "-it" clusters and "--" work
 * as getopt_long users expect; values are borrowed from argv. Knows nothing of the API. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum opt_kind {
    OPT_FLAG,     /* bool */
    OPT_TEXT,     /* const char * */
    OPT_LIST,     /* struct opt_list: may be given again */
    OPT_PAIRS,    /* struct opt_list, each "NAME=value" */
    OPT_COUNT,    /* struct opt_number: a whole number */
    OPT_REAL,     /* struct opt_real */
    OPT_SIZE,     /* struct opt_number, bytes: "512m" */
    OPT_DURATION, /* struct opt_number, ms: "1h30m" */
};

struct opt_number {
    bool set;
    int64_t v;
};

struct opt_real {
    bool set;
    double v;
};

struct opt_list {
    const char **items;
    size_t n;
};

struct opt {
    char letter; /* 0: none */
    const char *name;
    enum opt_kind kind;
    size_t offset;   /* into the struct the values go to */
    const char *arg; /* what help calls the value; NULL for a flag */
    const char *help;
    const char *values; /* completion: NULL, "@sandbox", "@image", "@file" or words */
};

/* Where parsed values go: a table and the struct its offsets count from. */
struct opt_set {
    const struct opt *opts;
    size_t n;
    void *base;
};

#define OPTS_ALL (-1)

/* Fill the sets from argv[0..argc). Operands go to `operands` (room for argc), in order. After
 * `stop_after` operands the next one ends the options and everything from it on is an operand
 * (OPTS_ALL: options may stand anywhere). */
int opts_parse(const struct opt_set *sets, size_t nsets, int stop_after, int argc, char **argv,
               char **operands, int *ret_n, struct err *err);
void opts_done(const struct opt_set *set); /* frees the lists */

/* The word of `words` closest to `text`, or NULL when none is close. */
const char *nearest(const char *text, const char *const *words, size_t n);
