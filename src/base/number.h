/* number - a decimal number out of a word, whole or not at all. */
#pragma once
#include <stdint.h>

/* -EINVAL: no number, or one above `max`. */
int number_u32(const char *text, uint32_t max, uint32_t *ret_v);
