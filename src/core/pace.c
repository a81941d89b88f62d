#include "core/pace.h"

#include "base/clock.h"

#define BYTES_MAX (INT64_MAX / 4)

int pace_left(const struct pace *p, int most_ms)
{
    int64_t left = p->grace_ms + (int64_t)p->bytes - p->waited_ms;
    return left < 0 ? 0 : left < most_ms ? (int)left : most_ms;
}

void pace_note(struct pace *p, int64_t began_ms, uint64_t bytes)
{
    p->waited_ms += clock_mono_ms() - began_ms;
    p->bytes = p->bytes + bytes < BYTES_MAX ? p->bytes + bytes : BYTES_MAX;
}
