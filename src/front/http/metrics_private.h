/* metrics_private - what the files of the metrics share: metrics.c has what the server counts,
 * metrics_machine.c what the machine and the sandboxes on it take. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct core;
struct core_counts;

/* A number; those of one name, with other labels, stand one after another. */
struct metric {
    const char *name, *type, *help;
    const char *labels; /* NULL: none */
    uint64_t value;
};

int metrics_put_head(struct buf *out, const char *name, const char *type, const char *help);
int metrics_put(struct buf *out, const struct metric *rows, size_t n);
int metrics_put_machine(struct core *core, const struct core_counts *c, struct buf *out);
