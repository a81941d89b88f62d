#include "archive/cut.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/check.h"
#include "wire/chunks.h"

#define SIZE (48u * 1024 * 1024)

static unsigned char *noise(size_t n)
{
    unsigned char *p = malloc(n);
    uint64_t s = 88172645463325252ULL;
    for (size_t i = 0; p && i < n; i++) {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        p[i] = (unsigned char)(s >> 32);
    }
    return p;
}

static size_t cut_all(const unsigned char *p, size_t n, size_t *ends)
{
    struct cut c;
    size_t at = 0, pieces = 0;
    cut_init(&c);
    while (at < n) {
        at += cut_find(&c, p + at, n - at);
        ends[pieces++] = at;
    }
    return pieces;
}

TEST(pieces_have_the_size_they_should)
{
    unsigned char *p = noise(SIZE);
    size_t ends[SIZE / CHUNK_MIN + 1], last = 0;
    size_t n = cut_all(p, SIZE, ends);
    CHECK(n > SIZE / CHUNK_USUAL / 2 && n < SIZE / CHUNK_USUAL * 2);
    for (size_t i = 0; i < n; last = ends[i++])
        CHECK(ends[i] - last <= CHUNK_MAX && (i + 1 == n || ends[i] - last > CHUNK_MIN));
    free(p);
}

TEST(a_byte_more_moves_only_the_cuts_near_it)
{
    unsigned char *p = noise(SIZE), *q = malloc(SIZE + 1);
    size_t a[SIZE / CHUNK_MIN + 1], b[SIZE / CHUNK_MIN + 1], at = SIZE / 3, same = 0;
    memcpy(q, p, at);
    q[at] = 'x';
    memcpy(q + at + 1, p + at, SIZE - at);
    size_t na = cut_all(p, SIZE, a), nb = cut_all(q, SIZE + 1, b);
    for (size_t i = 0; i < na; i++)
        for (size_t j = 0; j < nb; j++)
            same += b[j] == (a[i] < at ? a[i] : a[i] + 1);
    CHECK(same + 3 >= na);
    free(p);
    free(q);
}

TEST(what_has_no_pattern_is_cut_at_the_most)
{
    unsigned char *p = calloc(1, CHUNK_MAX * 2);
    size_t ends[32];
    CHECK_EQ(cut_all(p, CHUNK_MAX * 2, ends), 2);
    CHECK_EQ(ends[0], CHUNK_MAX);
    CHECK_EQ(cut_all(p, 1, ends), 1);
    free(p);
}
