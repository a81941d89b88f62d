/* digest - "sha256:" and 64 hex digits: the name of bytes.
 *
 * Content is named by its hash, so a name that is checked here is safe as a file's name too. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define DIGEST_SIZE 72 /* "sha256:", 64 digits and the NUL */
#define DIGEST_HEX 7   /* where the digits begin */

bool digest_valid(const char *text); /* NULL is not */
int digest_of(const void *p, size_t n, char ret_digest[DIGEST_SIZE]);
/* The chain id of a layer on `parent` ("" or NULL: none). */
int digest_chain(const char *parent, const char *diff_id, char ret_chain[DIGEST_SIZE]);

/* A hash in the making; digest_end frees it. */
struct digest;
struct digest *digest_begin(void); /* NULL: no memory */
int digest_add(struct digest *d, const void *p, size_t n);
int digest_end(struct digest *d, char ret_digest[DIGEST_SIZE]);
void digest_free(struct digest *d);
