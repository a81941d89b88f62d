/* wanted - what somebody wants to know of the changes between two states.
 *
 * Read from the descriptor that the daemon passed on; what is in it is checked again here. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/unpack.h"

struct wanted {                           /* all zero: every path, no texts */
    const char *paths[COMPARE_PATHS_MAX]; /* absolute and clean: those, and what is below them */
    size_t n_paths;                       /* 0: all */
    bool text;
    int64_t shared_before_ms; /* compare_query */
    char *memory;             /* that the paths are in; owned, or NULL */
};

int wanted_read(int fd, struct wanted *ret_ask, struct err *err);
void wanted_done(struct wanted *ask);

enum wanted_how {
    WANTED_NOT,   /* and nothing below it */
    WANTED_BELOW, /* something below it */
    WANTED_WHOLE,
};
enum wanted_how wanted_is(const struct wanted *ask, const char *path);
