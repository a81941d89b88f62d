/* allot - how much of the network one sandbox may use: connections at once and in a second, bytes in a
 * second and in all.
 *
 * A bucket of bytes each way fills with time; who finds it empty does not read on, so that the sender
 * feels it, and is called again when there is some. What is beyond a limit of connections, or
 * after the last byte of the sum, is refused at once. Arithmetic and a list: it reads no clock. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/policy.h"

#define ALLOT_SHARE_MIN (16 * 1024) /* less at a time costs more than it is worth */

enum allot_way { ALLOT_SENT, ALLOT_RECEIVED, ALLOT_WAYS };

/* 0: without limit. */
struct allot_limits {
    uint32_t connections;
    uint32_t connections_per_s;
    uint64_t bytes_per_s; /* each way */
    uint64_t bytes;       /* both ways, in all */
};

struct bucket {
    int64_t level; /* below zero: somebody took more than there was */
    int64_t at_ms; /* filled up to this moment */
};

/* One that waits for bytes to be allowed again. */
struct allot_wait {
    struct allot_wait *next, **at; /* at: NULL while it does not wait */
    void (*fn)(struct allot_wait *wait);
};

struct allot {
    struct allot_limits limits;
    uint64_t spent; /* bytes, both ways, ever */
    struct bucket begun, bytes[ALLOT_WAYS];
    struct allot_wait *first, **last;
    size_t n_waiting;
};

void allot_init(struct allot *a);
/* From now on; spent: what was counted before this broker, or what it knows if that is more. */
void allot_set(struct allot *a, const struct allot_limits *limits, uint64_t spent, int64_t now_ms);
/* May another connection begin, while so many are open? Else *ret_why. */
bool allot_admit(struct allot *a, size_t open, int64_t now_ms, enum policy_why *ret_why);
/* So many bytes may be read now; 0: wait. SIZE_MAX: there is no limit. */
size_t allot_may(struct allot *a, enum allot_way way, int64_t now_ms);
void allot_spend(struct allot *a, enum allot_way way, uint64_t bytes);
bool allot_is_spent(const struct allot *a); /* the sum is used up */

void allot_wait(struct allot *a, struct allot_wait *w, void (*fn)(struct allot_wait *wait));
void allot_wait_end(struct allot *a, struct allot_wait *w); /* may not wait at all */
/* Calls all that wait now, each once; they may wait again. */
void allot_wake(struct allot *a);
