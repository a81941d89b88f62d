/* compare - which files differ between two states: checkpoints, or sandboxes as they are now.
 *
 * Both lie on the same image, whoever's they were: two forks, a checkpoint and what came of it, two checkpoints of
 * different branches. A state is told by a checkpoint's id, by a sandbox's id or name, or by what else
 * tells a checkpoint (checkpoint.h), in this order. Calls block for as long as the keeper takes. */
#pragma once
#include <stdbool.h>

#include "core/core.h"
#include "core/trace.h"

struct compare_ask {
    const char *const *paths; /* absolute: those, and what is below them */
    size_t n_paths;           /* 0: all */
    bool text;                /* how texts changed, too */
    size_t max;               /* changes that are told; all are counted */
};

struct compare_end {
    char id[ID_SIZE];
    bool sandbox; /* else a checkpoint */
};

struct comparison {
    struct compare_end from, to;
    struct trace_changes changes;
};

/* -ENOENT, checkpoint_not_found: neither of both; -EINVAL, invalid_path; -EXDEV, different_images. */
int compare(struct core *core, const char *owner, const char *from, const char *to,
            const struct compare_ask *ask, struct comparison *ret_c, struct err *err);
void comparison_done(struct comparison *c);
