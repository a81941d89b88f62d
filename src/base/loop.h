/* loop - an event loop: descriptors to watch, deadlines, and what is freed after a round.
 *
 * Single-threaded, epoll underneath. A watch is embedded in what it belongs to. Its callback may
 * remove any watch, its own included; whoever frees the object does it at the end of the round
 * (loop_later, loop_defer). Deadlines are kept on a wheel, so that setting one costs nothing and
 * cannot fail; they are met to a tenth of a second. Nothing in a callback may block. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct loop;

struct watch {
    int fd; /* -1 while it is not in the loop */
    void (*fn)(struct watch *w, uint32_t events);
};

int loop_new(struct loop **ret_loop);
void loop_free(struct loop *loop);

int loop_add(struct loop *loop, struct watch *w, int fd, uint32_t events);
int loop_change(struct loop *loop, struct watch *w, uint32_t events);
void loop_remove(struct loop *loop, struct watch *w); /* the descriptor stays the caller's */

/* Free p with free() after this round's callbacks are done. */
void loop_later(struct loop *loop, void *p);

/* Call fn after this round's callbacks and deadlines are done; embedded, so it cannot fail. Once
 * for each object: it is meant to end it. */
struct later {
    struct later *next;
    void (*fn)(struct later *later);
};
void loop_defer(struct loop *loop, struct later *later, void (*fn)(struct later *later));

struct deadline {
    struct deadline *next, **at; /* at: NULL while it is not set */
    int64_t mono_ms;
    void (*fn)(struct deadline *d);
};
/* Call fn once, at or soon after that moment; a former one of `d` is replaced. */
void loop_deadline(struct loop *loop, struct deadline *d, int64_t mono_ms,
                   void (*fn)(struct deadline *d));
void loop_no_deadline(struct loop *loop, struct deadline *d);

/* Run until loop_stop, perhaps not for the first time; tick is called at least every tick_ms while `loop_want_tick` is on. */
int loop_run(struct loop *loop, int tick_ms, void (*tick)(void *arg), void *arg);
void loop_want_tick(struct loop *loop, bool on);
void loop_stop(struct loop *loop);
