/* names - the names in a directory, read in pieces and sorted.
 *
 * A directory may hold millions: memory is bounded by what the caller gives, and what does not fit
 * comes with the next piece. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct names {
    char *bytes;
    size_t used, cap;
    uint32_t *at; /* each name's start */
    size_t n, n_cap;
};

/* What comes next of the directory, some `budget` bytes of it, sorted, without "." and ".."; none
 * left: n is 0. */
int names_more(struct names *l, int dir, size_t budget);
/* The `keep` least of all names from `from` on (NULL: of all). -E2BIG when they take too much
 * memory. */
int names_least(struct names *l, int dir, const char *from, size_t keep);
void names_done(struct names *l);

static inline const char *names_get(const struct names *l, size_t i)
{
    return l->bytes + l->at[i];
}
