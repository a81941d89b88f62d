/* units - sizes and times as people write and read them.
 *
 * "512m", "1.5g", "30s", "1h30m" in; "512 MiB", "3 m", "0.04 s" out. Sizes are powers of
 * 1024, whatever the spelling. Pure functions over text; nothing here blocks. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define UNIT_TEXT_MAX 32 /* the longest is a 20-digit number and a unit */

/* All return 0, or -EINVAL for what is not one, or -ERANGE. */
int size_parse(const char *text, int64_t *ret_bytes);  /* a bare number is MiB */
int duration_parse(const char *text, int64_t *ret_ms); /* a bare number is seconds; "none" is 0 */
int count_parse(const char *text, int64_t *ret_n);     /* a whole number, 0 or more */
int real_parse(const char *text, double *ret_v);       /* a decimal, 0 or more */
int moment_parse(const char *text, int64_t *ret_wall_ms); /* RFC 3339, UTC */

const char *size_text(int64_t bytes, char out[UNIT_TEXT_MAX]);
const char *duration_text(int64_t ms, char out[UNIT_TEXT_MAX]); /* one unit: "42 s", "3 d" */
const char *cpu_time_text(int64_t us, char out[UNIT_TEXT_MAX]); /* "0.04 s", "2:07" */
const char *real_text(double v, char out[UNIT_TEXT_MAX]);       /* "1", "0.5" */
