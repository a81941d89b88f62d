#include "init/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MARKS_FIRST 8u
#define MARK_SHARE 32u /* one mark for so many bytes: alternating lines fit, single bytes do not */

static uint64_t mark_make(uint64_t offset, unsigned stream)
{
    return offset << 2 | stream;
}

static uint64_t mark_offset(uint64_t mark)
{
    return mark >> 2;
}

static unsigned mark_stream(uint64_t mark)
{
    return (unsigned)(mark & 3);
}

void ring_init(struct ring *r, size_t max)
{
    *r = (struct ring){ .max = max };
}

void ring_done(struct ring *r)
{
    free(r->data);
    free(r->marks);
    *r = (struct ring){ .max = r->max, .head = r->tail, .tail = r->tail };
}

size_t ring_memory(const struct ring *r)
{
    return r->cap + r->marks_cap * sizeof(*r->marks);
}

static uint32_t marks_limit(const struct ring *r)
{
    size_t n = r->cap / MARK_SHARE;
    return n < MARKS_FIRST ? MARKS_FIRST : (uint32_t)n;
}

/* Forget everything before `offset`. */
static void evict_to(struct ring *r, uint64_t offset)
{
    r->head = offset;
    /* The mark that covers head stays, and so does the last one: it names the open stream. */
    while (r->marks_n > 1 && mark_offset(r->marks[r->marks_first + 1]) <= offset) {
        r->marks_first++;
        r->marks_n--;
    }
}

/* Copy [from, from + n) into out. */
static void copy_out(const struct ring *r, uint64_t from, size_t n, char *out)
{
    while (n > 0) {
        size_t at = (size_t)(from % r->cap);
        size_t piece = r->cap - at < n ? r->cap - at : n;
        memcpy(out, r->data + at, piece);
        out += piece;
        from += piece;
        n -= piece;
    }
}

int ring_resize(struct ring *r, size_t cap)
{
    if (cap == r->cap)
        return 0;
    if (cap == 0) {
        ring_done(r);
        return 0;
    }
    char *data = malloc(cap);
    if (!data)
        return -ENOMEM;
    if (r->tail - r->head > cap)
        evict_to(r, r->tail - cap);
    size_t n = (size_t)(r->tail - r->head);
    size_t at = (size_t)(r->head % cap);
    size_t piece = cap - at < n ? cap - at : n;
    if (n) {
        copy_out(r, r->head, piece, data + at);
        copy_out(r, r->head + piece, n - piece, data);
    }
    free(r->data);
    r->data = data;
    r->cap = cap;
    return 0;
}

/* The offset up to which the ring must be emptied so that one more mark fits; head if it does. */
static uint64_t evict_for_mark(const struct ring *r, unsigned stream)
{
    if (r->marks_n == 0 || mark_stream(r->marks[r->marks_first + r->marks_n - 1]) == stream)
        return r->head;
    if (r->marks_n < marks_limit(r))
        return r->head;
    return mark_offset(r->marks[r->marks_first + 1]);
}

size_t ring_room(const struct ring *r, unsigned stream, uint64_t floor)
{
    if (floor > r->tail)
        floor = r->tail;
    if (floor < r->head)
        floor = r->head;
    if (evict_for_mark(r, stream) > floor)
        return 0;
    return r->cap - (size_t)(r->tail - floor);
}

int ring_reserve(struct ring *r, unsigned stream, size_t n, struct iovec iov[2])
{
    uint64_t first = evict_for_mark(r, stream);
    if (r->tail + n > r->cap && r->tail + n - r->cap > first)
        first = r->tail + n - r->cap;
    if (first > r->head)
        evict_to(r, first);

    size_t at = r->cap ? (size_t)(r->tail % r->cap) : 0;
    size_t piece = r->cap - at < n ? r->cap - at : n;
    iov[0] = (struct iovec){ r->data + at, piece };
    iov[1] = (struct iovec){ r->data, n - piece };
    return iov[1].iov_len ? 2 : 1;
}

static int mark_push(struct ring *r, unsigned stream)
{
    if (r->marks_first + r->marks_n == r->marks_cap) {
        if (r->marks_first > 0 && r->marks_first >= r->marks_cap / 2) {
            memmove(r->marks, r->marks + r->marks_first, r->marks_n * sizeof(*r->marks));
            r->marks_first = 0;
        } else {
            uint32_t cap = r->marks_cap ? r->marks_cap * 2 : MARKS_FIRST;
            uint64_t *marks = realloc(r->marks, cap * sizeof(*marks));
            if (!marks)
                return -ENOMEM;
            r->marks = marks;
            r->marks_cap = cap;
        }
    }
    r->marks[r->marks_first + r->marks_n++] = mark_make(r->tail, stream);
    return 0;
}

int ring_commit(struct ring *r, unsigned stream, size_t n)
{
    if (n == 0)
        return 0;
    if (r->marks_n == 0 || mark_stream(r->marks[r->marks_first + r->marks_n - 1]) != stream) {
        int rc = mark_push(r, stream);
        if (rc < 0)
            return rc;
    }
    r->tail += n;
    return 0;
}

int ring_peek(const struct ring *r, uint64_t offset, size_t max, struct iovec iov[2],
              unsigned *ret_stream, size_t *ret_n)
{
    /* The last mark at or before offset. */
    uint32_t lo = 0, hi = r->marks_n;
    const uint64_t *marks = r->marks + r->marks_first;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (mark_offset(marks[mid]) <= offset)
            lo = mid;
        else
            hi = mid;
    }
    uint64_t end = lo + 1 < r->marks_n ? mark_offset(marks[lo + 1]) : r->tail;
    size_t n = end - offset < max ? (size_t)(end - offset) : max;
    size_t at = (size_t)(offset % r->cap);
    size_t piece = r->cap - at < n ? r->cap - at : n;

    iov[0] = (struct iovec){ r->data + at, piece };
    iov[1] = (struct iovec){ r->data, n - piece };
    *ret_stream = mark_stream(marks[lo]);
    *ret_n = n;
    return iov[1].iov_len ? 2 : 1;
}
