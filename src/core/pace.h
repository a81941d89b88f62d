/* pace - how slowly a sandbox may answer.
 *
 * A limit on each wait alone lets a file worker, which root inside can slow down, send a byte a minute for
 * ever. So the waits of one operation add up: those of `grace_ms`, and a millisecond more for each
 * byte that came. Time that the client takes does not count. Pure; never blocks. */
#pragma once
#include <stdint.h>

struct pace {
    int64_t grace_ms;
    int64_t waited_ms;
    uint64_t bytes;
};

/* What the next wait may take, at most `most_ms`; 0: none is left. */
int pace_left(const struct pace *p, int most_ms);
/* A wait that began at that moment of the monotonic clock has ended, with so many bytes. */
void pace_note(struct pace *p, int64_t began_ms, uint64_t bytes);
