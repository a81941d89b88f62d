#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#define BLOCK_BYTES 4096
#define ALIGN 16

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(ALIGN) char data[];
};

static struct arena_block *block_for(struct arena *a, size_t n)
{
    struct arena_block *b = a->blocks;
    if (b && b->size - b->used >= n)
        return b;
    size_t size = n > BLOCK_BYTES ? n : BLOCK_BYTES;
    b = calloc(1, sizeof(*b) + size);
    if (!b)
        return NULL;
    b->size = size;
    b->next = a->blocks;
    a->blocks = b;
    return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
    if (n > a->max - a->used || n > SIZE_MAX / 2)
        return NULL;
    n = (n + ALIGN - 1) / ALIGN * ALIGN;
    struct arena_block *b = block_for(a, n);
    if (!b)
        return NULL;
    void *p = b->data + b->used;
    b->used += n;
    a->used = n < a->max - a->used ? a->used + n : a->max;
    return p;
}

char *arena_strndup(struct arena *a, const char *p, size_t n)
{
    char *copy = n < SIZE_MAX ? arena_alloc(a, n + 1) : NULL;
    if (copy && n)
        memcpy(copy, p, n);
    return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

void *arena_grow(struct arena *a, void *items, size_t n, size_t item_size)
{
    /* The capacity is not kept: it is the next power of two, so it is full when n is one. */
    if (n & (n - 1) || (items && n == 0))
        return items;
    size_t cap = n ? n * 2 : 1;
    if (cap > SIZE_MAX / 2 / item_size)
        return NULL;
    void *more = arena_alloc(a, cap * item_size);
    if (more && n)
        memcpy(more, items, n * item_size);
    return more;
}

void arena_done(struct arena *a)
{
    while (a->blocks) {
        struct arena_block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
    a->used = 0;
}
