/* row - a sandbox's row in the store, and the sentence for one that is not there.
 *
 * Translates between struct sandbox and struct store_sandbox. Each call is one short write or
 * read of the database. */
#pragma once
#include "core/private.h"

int row_add(struct core *core, const struct sandbox *s, const char *tree, struct err *err);
int row_save(struct core *core, const struct sandbox *s, const char *tree, struct err *err);
int row_mark(struct core *core, const struct sandbox *s, struct err *err);
/* -EPROTO for a row that no version of us wrote. */
int row_read(const struct store_sandbox *row, struct sandbox *ret_s, struct err *err);

/* Sets the error for a sandbox that is not in the table: sandbox_gone, and *ret_s filled if
 * ret_s is not NULL, or sandbox_not_found. Always below zero. */
int row_missing(struct core *core, const char *owner, const char *who, struct sandbox *ret_s,
                struct err *err);
