/* sparse - writing so that blocks of zeros take no room. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* p[0..n) at *pos, which moves on. Holes are left; the caller sets the length at the end. */
int sparse_write(int fd, uint64_t *pos, const char *p, size_t n);
