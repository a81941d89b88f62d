/* chunk - a stream as pieces that are known by their content, packed; and back.
 *
 * Both run confined, for the stream is a sandbox's and the pieces come from a storage that others may have written to. */
#pragma once
#include "base/err.h"

struct chunk;

/* Before the walls go up: what the libraries load on first use. */
int chunk_new(struct chunk **ret_c, struct err *err);
void chunk_free(struct chunk *c);

int chunk_write(struct chunk *c, struct err *err); /* 0 to 1, as wire/chunks.h has it */
int chunk_join(struct chunk *c, struct err *err);  /* and the report */
