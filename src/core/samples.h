/* samples - what a sandbox used lately: a reading every so often, for those who draw curves.
 *
 * A ring of bounded length in memory, filled by the counting of usage (count.c); the oldest make
 * room. Readings that come close together become one. Gone with the sandbox and the daemon: what is
 * kept is usage, by the hour. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "core/core.h"

#define SAMPLES_MAX 360    /* an hour of the usual interval */
#define SAMPLE_MIN_MS 1000 /* closer ones become one */

struct sample {
    int64_t at_ms, span_ms; /* span: since the one before */
    uint64_t cpu_us;        /* used in that span */
    uint64_t memory_bytes, disk_bytes;
};

struct samples {
    struct sample *items;
    size_t n, room, head; /* head: the oldest, once it is full */
};
void samples_add(struct samples *s, const struct sample *one); /* without memory it is dropped */
const struct sample *samples_at(const struct samples *s, size_t i); /* 0: the oldest */
void samples_done(struct samples *s);

/* Those of a sandbox that lie in [from_ms, to_ms], oldest first, the present among them if it runs;
 * free(*ret_items). Failures as of sandbox_get. Blocks for as long as the keeper takes. */
int sandbox_samples(struct core *core, const char *owner, const char *who, int64_t from_ms,
                    int64_t to_ms, struct sample **ret_items, size_t *ret_n, struct err *err);
