#include "unpack/seen.h"

#include <errno.h>
#include <stdlib.h>

#include "base/id.h"

#define FIRST_SIZE 1024

static uint64_t mix(uint64_t h)
{
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ULL;
    return h ^ h >> 33;
}

static uint64_t key_of(const struct seen *s, uint64_t dir, const char *name)
{
    uint64_t h = mix(s->seed ^ dir);
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        h = (h ^ *p) * 0x100000001b3ULL;
    h = mix(h ^ s->seed);
    return h ? h : 1;
}

int seen_init(struct seen *s)
{
    *s = (struct seen){ .size = FIRST_SIZE };
    s->slots = calloc(s->size, sizeof(*s->slots));
    return s->slots ? random_bytes(&s->seed, sizeof(s->seed)) : -ENOMEM;
}

void seen_done(struct seen *s)
{
    free(s->slots);
    s->slots = NULL;
}

static void put(uint64_t *slots, size_t size, uint64_t key)
{
    size_t i = key & (size - 1);
    while (slots[i] && slots[i] != key)
        i = (i + 1) & (size - 1);
    slots[i] = key;
}

bool seen_has(const struct seen *s, uint64_t dir, const char *name)
{
    uint64_t key = key_of(s, dir, name);
    size_t i = key & (s->size - 1);
    while (s->slots[i] && s->slots[i] != key)
        i = (i + 1) & (s->size - 1);
    return s->slots[i] == key;
}

int seen_add(struct seen *s, uint64_t dir, const char *name)
{
    if (seen_has(s, dir, name))
        return 0;
    if (s->n * 2 >= s->size) {
        uint64_t *slots = calloc(s->size * 2, sizeof(*slots));
        if (!slots)
            return -ENOMEM;
        for (size_t i = 0; i < s->size; i++)
            if (s->slots[i])
                put(slots, s->size * 2, s->slots[i]);
        free(s->slots);
        s->slots = slots;
        s->size *= 2;
    }
    put(s->slots, s->size, key_of(s, dir, name));
    s->n++;
    return 0;
}
