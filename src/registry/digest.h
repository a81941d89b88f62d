/* digest - "sha256:" and 64 hexadecimal digits: what a blob is called by its content.
 *
 * Other algorithms are refused: no registry needs them, and one is enough to get right. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define DIGEST_LEN 71 /* "sha256:" and 64 digits */
#define DIGEST_SIZE (DIGEST_LEN + 1)

bool digest_valid(const char *p, size_t n);
int digest_of(const void *p, size_t n, char out[DIGEST_SIZE]); /* -EIO if the library fails */
