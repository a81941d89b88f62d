/* sha - "sha256:" and 64 hexadecimal digits: what a blob is called by its content.
 *
 * Other algorithms are refused: no registry needs them, and one is enough to get right. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define SHA_LEN 71 /* "sha256:" and 64 digits */
#define SHA_SIZE (SHA_LEN + 1)

bool sha_valid(const char *p, size_t n);
int sha_of(const void *p, size_t n, char out[SHA_SIZE]); /* -EIO if the library fails */
