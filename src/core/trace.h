/* trace - what a sandbox did, as the kernel and its disk tell it: programs it ran, files it changed.
 *
 * Nothing here is the sandbox's own word but names and paths, which are hostile text. Works on one that is
 * stopped too. Calls block for as long as the keeper takes. Failures as of sandbox_get. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "core/core.h"
#include "wire/keeper.h"
#include "wire/unpack.h"

/* Those it ran most often first; free(*ret_items). *ret_counted: false where the kernel does not
 * count for us. */
int trace_programs(struct core *core, const char *owner, const char *who,
                   struct keeper_program **ret_items, size_t *ret_n, bool *ret_counted,
                   struct err *err);

struct trace_change {
    struct change_head head;
    char *path;
    char *text; /* compare.h; NULL: none */
};
struct trace_changes {
    struct trace_change *items; /* by path, as many as were asked for */
    size_t n;
    uint64_t added, changed, removed; /* all of them */
    uint64_t bytes;                   /* in files that were added or changed */
    bool cut;                         /* there are even more than were counted */
};
int trace_changes(struct core *core, const char *owner, const char *who, size_t max,
                  struct trace_changes *ret_changes, struct err *err);
/* What a KEEPER_CHANGES or KEEPER_COMPARE tells. */
int trace_ask(struct core *core, const struct keeper_request *q, const int *fds, size_t nfds,
              size_t max, struct trace_changes *ret_changes, struct err *err);
void trace_changes_done(struct trace_changes *c);

#define TRACE_SHARERS_MAX 64
/* The other sandboxes that see this volume, all of its own team: how many, at most those. */
size_t trace_sharers(struct core *core, const char *volume, const char *except,
                     char out[TRACE_SHARERS_MAX][ID_SIZE]);
