/* batch - one request for each of many names, some of them on their way at once.
 *
 * Results are told in the order of the names, whichever was answered first. Blocks until
 * the last one is told. */
#pragma once
#include "cli/cli.h"

struct batch_item {
    const char *name;
    int result; /* below zero: it failed; before the batch: it is told, and nothing is asked */
    struct err err;
    char code[REQUEST_CODE_MAX]; /* the API's name of the failure, or empty */
    json_t *answer;              /* NULL: none; taken or freed by `told` */
};

/* `path` makes the request's path, which is freed; `told` gets each item once. */
struct batch {
    const char *method;
    char *(*path)(const char *name);
    void (*told)(struct batch_item *item, void *arg);
    void *arg;
};

int batch_run(struct cli *cli, const struct batch *batch, struct batch_item *items, size_t n,
              struct err *err);
