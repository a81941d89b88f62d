/* seen - which directory entries a layer has made itself, as a set of hashes.
 *
 * A whiteout hides what lower layers have, never what its own layer brings, in whatever order the
 * two come. An entry is its directory's inode and its name, so a directory reached through a link is
 * the same one. Eight bytes each; the seed is random, so nobody can aim at a collision. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen {
    uint64_t seed;
    uint64_t *slots; /* 0: free */
    size_t n, size;
};

int seen_init(struct seen *s); /* -errno */
void seen_done(struct seen *s);
int seen_add(struct seen *s, uint64_t dir, const char *name); /* -ENOMEM */
bool seen_has(const struct seen *s, uint64_t dir, const char *name);
