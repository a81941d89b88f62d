#include "broker/ask.h"

#include <unistd.h>

#include "base/id.h"
#include "wire/broker.h"

int asks_init(struct asks *asks, struct err *err)
{
    *asks = (struct asks){ 0 };
    int r = random_bytes(&asks->last, sizeof(asks->last));
    return r < 0 ? err_set(err, -r, "cannot get random bytes") : 0;
}

void ask_begin(struct asks *asks, struct ask *ask,
               void (*fn)(struct ask *ask, const struct broker_answer *answer, int fd))
{
    ask_cancel(ask);
    ask->number = ++asks->last;
    ask->fn = fn;
    struct ask **bucket = &asks->buckets[ask->number % ASK_BUCKETS];
    ask->next = *bucket;
    ask->at = bucket;
    if (ask->next)
        ask->next->at = &ask->next;
    *bucket = ask;
}

void ask_cancel(struct ask *ask)
{
    if (!ask->at)
        return;
    *ask->at = ask->next;
    if (ask->next)
        ask->next->at = ask->at;
    ask->at = NULL;
}

void asks_answer(struct asks *asks, const struct broker_answer *answer, int fd)
{
    for (struct ask *a = asks->buckets[answer->number % ASK_BUCKETS]; a; a = a->next)
        if (a->number == answer->number) {
            ask_cancel(a);
            a->fn(a, answer, fd);
            return;
        }
    if (fd >= 0)
        (void)close(fd);
}
