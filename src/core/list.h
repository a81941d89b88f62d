/* list - a place in the order of lists, as text that a client hands back. */
#pragma once
#include <stdint.h>

#include "base/id.h"

#define CURSOR_SIZE 48 /* 16 hex digits, '-', an id */

void cursor_write(int64_t created_ms, const char *id, char out[CURSOR_SIZE]);
int cursor_read(const char *text, int64_t *ret_created_ms, char ret_id[ID_SIZE]); /* -EINVAL */
