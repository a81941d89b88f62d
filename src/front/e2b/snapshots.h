/* snapshots - what these clients call a snapshot: a checkpoint with memory that one of them asked for.
 *
 * Its id is the checkpoint's; a name, which may be given again to a later one, is kept among the
 * checkpoint's metadata, whose mark tells snapshots from other checkpoints. */
#pragma once
#include "core/checkpoint.h"
#include "front/e2b/e2b.h"

/* By id or name, a tag behind it or the team before it. -ENOENT: it is not a snapshot of this team. */
int e2b_snapshot_find(struct request *req, const char *text, struct checkpoint *ret_c);
/* A sandbox from it, with what the request says of a sandbox (`spec`). */
int e2b_snapshot_start(struct request *req, const struct checkpoint *c,
                       const struct sandbox_spec *spec, struct sandbox *ret_s, struct err *err);
