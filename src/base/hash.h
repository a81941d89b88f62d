/* hash - FNV-1a, for tables whose names nobody chooses with bad intent, and for short marks of a text.
 *
 * Where clients choose the names, begin with a number they cannot know instead of HASH_SEED. Not for
 * secrets. The same text has the same hash in every version: some are stored. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_SEED UINT64_C(14695981039346656037)

/* Goes on from `hash`: several pieces one after the other are one text. */
static inline uint64_t hash_more(uint64_t hash, const void *p, size_t n)
{
    for (const unsigned char *at = p; n > 0; n--)
        hash = (hash ^ *at++) * UINT64_C(1099511628211);
    return hash;
}

static inline uint64_t hash_text(const char *text)
{
    return hash_more(HASH_SEED, text, strlen(text));
}

/* Half as long, where it is part of a name that a person sees. */
static inline uint32_t hash_short(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}
