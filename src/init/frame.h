/* frame - what we answer, put into a buffer as whole frames.
 *
 * Each call appends one frame, or nothing and returns -errno. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/wire.h"

struct proc;

int frame_empty(struct buf *b, enum wire_type type);
int frame_error(struct buf *b, const struct err *err);
int frame_pong(struct buf *b, uint64_t uptime_ms, uint64_t live);
int frame_dropped(struct buf *b, uint64_t offset, uint64_t bytes);
/* The head of an OUTPUT frame; its n bytes follow. */
int frame_output(struct buf *b, unsigned stream, uint64_t offset, size_t n);
/* `fresh` asks the kernel for what a running one uses now. */
int frame_proc(struct buf *b, enum wire_type type, const struct proc *p, bool fresh);
/* One that was not started through the API; 0 and no frame if it is gone by now. */
int frame_stranger(struct buf *b, int pid);
