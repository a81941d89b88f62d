#include "archive/cut.h"

#include "wire/chunks.h"

/* Bits of the hash that must be zero: more before the usual size, fewer after it, so that most pieces are near it. */
#define BITS_BEFORE 22
#define BITS_AFTER 18

/* Any numbers do that have no pattern; these are easy to make again. */
void cut_init(struct cut *c)
{
    uint64_t seed = 0x77617272656e0001ULL;
    for (int i = 0; i < 256; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15ULL;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
        c->gear[i] = z ^ z >> 31;
    }
}

size_t cut_find(const struct cut *c, const unsigned char *p, size_t n)
{
    if (n <= CHUNK_MIN)
        return n;
    size_t most = n < CHUNK_MAX ? n : CHUNK_MAX;
    size_t usual = most < CHUNK_USUAL ? most : CHUNK_USUAL;
    uint64_t h = 0;
    size_t i = CHUNK_MIN - 64; /* the hash is of 64 bytes; the first cut may be at CHUNK_MIN */
    for (; i < CHUNK_MIN; i++)
        h = (h << 1) + c->gear[p[i]];
    for (; i < usual; i++) {
        h = (h << 1) + c->gear[p[i]];
        if (h >> (64 - BITS_BEFORE) == 0)
            return i + 1;
    }
    for (; i < most; i++) {
        h = (h << 1) + c->gear[p[i]];
        if (h >> (64 - BITS_AFTER) == 0)
            return i + 1;
    }
    return most;
}
