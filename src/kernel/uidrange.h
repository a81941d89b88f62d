/* uidrange - host ids that no other sandbox on this machine has.
 *
 * A range is 65,536 ids; ranges come in blocks of 256. A block belongs to one daemon's run
 * directory, written down in a host-wide registry (/run/warren-ids), so that daemons side by side
 * never share one. A range belongs to a running cell: files on disk keep the sandbox's own ids and
 * are mapped when mounted, so a stopped sandbox needs none. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

#define UIDRANGE_SIZE 65536u

struct uidrange_pool;

/* `run_dir` must be absolute; it is the owner's name in the registry. */
int uidrange_open(const char *registry, const char *run_dir, struct uidrange_pool **ret_pool,
                  struct err *err);
void uidrange_free(struct uidrange_pool *pool); /* the blocks stay ours */
DEFINE_FREEP(struct uidrange_pool *, uidrange_free)

int uidrange_take(struct uidrange_pool *pool, uint32_t *ret_base, struct err *err);
int uidrange_adopt(struct uidrange_pool *pool, uint32_t base); /* a cell found running has it */
void uidrange_give_back(struct uidrange_pool *pool, uint32_t base);
void uidrange_release_all(struct uidrange_pool *pool); /* give our blocks back to the host */
