/* textdiff - how one text became another, as the hunks of a unified diff.
 *
 * The shortest edit where it is short; texts that differ in very many places are told as one large
 * replacement, so that time and memory stay bounded whatever is in them. Knows nothing of files: no
 * "---" and "+++" lines. Pure; does not block. */
#pragma once
#include <stddef.h>

#include "base/buf.h"

#define TEXTDIFF_CONTEXT 3

/* Appends nothing for equal texts. -EMSGSIZE: out's limit was reached, whole lines are in it. */
int textdiff(const char *a, size_t an, const char *b, size_t bn, struct buf *out);
