#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "core/build_private.h"
#include "core/keeper.h"

#define LOG_MODULE "build"
#define CONTEXT_MEMORY (512ull * 1024 * 1024) /* its page cache is counted too */
#define CONTEXT_PIDS 64

/* The cell is in no table: what a daemon that died leaves is unknown to the next, and removed. */
int build_cell_make(struct build *b, const char *tree, bool works, struct build_cell *ret_cell,
                    struct err *err)
{
    struct build_cell cell = { 0 };
    struct keeper_limits limits = { .memory_bytes = works ? BUILD_MEMORY : CONTEXT_MEMORY,
                                    .disk_bytes = BUILD_DISK,
                                    .cpu_millis = BUILD_CPU_MILLIS,
                                    .pids = works ? BUILD_PIDS : CONTEXT_PIDS };
    sandbox_spec_init(&cell.s.spec);
    memcpy(cell.s.owner, b->owner, sizeof(cell.s.owner));
    cell.s.state = SANDBOX_RUNNING;
    cell.s.spec.user = strdup("root");
    if (!cell.s.spec.user)
        return err_set(err, ENOMEM, "cannot allocate a cell");
    int r = id_random(cell.s.id);
    if (r < 0)
        r = err_set(err, -r, "cannot make an id");
    else
        r = keeper_ask_make(b->core, cell.s.id, tree, &limits, err);
    if (r < 0) {
        build_cell_done(b, &cell);
        return r;
    }
    *ret_cell = cell;
    return 0;
}

void build_cell_done(struct build *b, struct build_cell *cell)
{
    struct err err = ERR_INIT;
    if (cell->s.id[0] && keeper_ask_cell(b->core, KEEPER_DELETE, cell->s.id, &err) < 0)
        log_warn("a build's cell stays until the next start cell=%s err=\"%s\"", cell->s.id,
                 err.msg);
    sandbox_done(&cell->s);
    memset(cell, 0, sizeof(*cell));
}
