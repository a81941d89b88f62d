/* clock - the two clocks, and one way to write a moment down.
 *
 * Wall time (ms since 1970) for what users see and what must survive a
 * restart; monotonic time for every wait. */
#pragma once
#include <stdint.h>

#define CLOCK_TEXT_MAX 32 /* "2026-01-31T12:04:05.123Z" and room for a far year */

int64_t clock_now_ms(void);
int64_t clock_mono_ms(void);
int64_t clock_mono_us(void);
const char *clock_text(int64_t wall_ms, char out[CLOCK_TEXT_MAX]); /* RFC 3339, UTC */
/* RFC 3339 with Z or an offset; -EINVAL for anything else. */
int clock_parse(const char *text, int64_t *ret_wall_ms);
