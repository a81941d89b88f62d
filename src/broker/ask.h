/* ask - questions to warrend that wait for their answer.
 *
 * A question is embedded in what it is for. Its number is random at first and counts up, so that an
 * answer meant for a broker that died finds nobody. */
#pragma once
#include <stdint.h>

#include "base/err.h"

#define ASK_BUCKETS 256

struct broker_answer;

struct ask {
    uint64_t number;
    struct ask *next, **at; /* at: NULL while it waits for nothing */
    /* fd: -1, or what came with the answer; taken. */
    void (*fn)(struct ask *ask, const struct broker_answer *answer, int fd);
};

struct asks {
    uint64_t last;
    struct ask *buckets[ASK_BUCKETS];
};

int asks_init(struct asks *asks, struct err *err);
/* Its number is set; whoever sends it sends that. */
void ask_begin(struct asks *asks, struct ask *ask,
               void (*fn)(struct ask *ask, const struct broker_answer *answer, int fd));
void ask_cancel(struct ask *ask); /* may not wait at all */
void asks_answer(struct asks *asks, const struct broker_answer *answer, int fd);
