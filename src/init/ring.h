/* ring - the newest output of one process, and where each byte of it stood.
 *
 * Bytes of all streams lie in arrival order; a byte's offset counts the bytes before it since
 * the process began, so an offset is a cursor that stays true whatever the ring drops. Marks
 * note where the stream changes. Memory comes with the first byte and grows on demand. Knows
 * nothing of pipes or connections; who may be overwritten is the caller's `floor`. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define RING_FIRST 4096u            /* one page: what most commands print */
#define RING_DEFAULT (256u * 1024)  /* several screens of a build log */
#define RING_MAX (4u * 1024 * 1024) /* what one process may ask for */
#define RING_NO_FLOOR UINT64_MAX    /* nobody reads: the oldest bytes may go */

struct ring {
    char *data; /* the byte at offset o is data[o % cap] */
    size_t cap;
    size_t max;
    uint64_t head;   /* offset of the oldest byte kept */
    uint64_t tail;   /* offset the next byte will have: all bytes so far */
    uint64_t *marks; /* offset << 2 | stream, ascending; marks[first..first + n) are valid */
    uint32_t marks_first, marks_n, marks_cap;
};

void ring_init(struct ring *r, size_t max);
void ring_done(struct ring *r);
size_t ring_memory(const struct ring *r);

/* Move the content to memory of `cap` bytes; what does not fit leaves, oldest first. 0 frees
 * it all. -ENOMEM changes nothing. */
int ring_resize(struct ring *r, size_t cap);

/* How many bytes of `stream` fit in the present memory, if only bytes before floor may go. */
size_t ring_room(const struct ring *r, unsigned stream, uint64_t floor);

/* Make n bytes (at most ring_room) free, as one or two pieces; returns the number of pieces. The
 * caller fills some of them and commits. */
int ring_reserve(struct ring *r, unsigned stream, size_t n, struct iovec iov[2]);
/* -ENOMEM: no room for a mark; the bytes are not taken. */
int ring_commit(struct ring *r, unsigned stream, size_t n);

/* The bytes of one stream that begin at `offset` (head <= offset < tail), at most max of them:
 * the number of pieces. */
int ring_peek(const struct ring *r, uint64_t offset, size_t max, struct iovec iov[2],
              unsigned *ret_stream, size_t *ret_n);
