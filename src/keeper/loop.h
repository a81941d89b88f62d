/* loop - the keeper's event loop: descriptors to watch and a few timers. Single-threaded.
 *
 * A watch is embedded in what it belongs to. Its callback may remove any watch, its own
 * included; whoever frees the object does it at the end of the round (loop_later). */
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
void loop_remove(struct loop *loop, struct watch *w); /* the descriptor stays the caller's */

/* Free p with free() after this round's callbacks are done. */
void loop_later(struct loop *loop, void *p);

/* Run until loop_stop; tick is called at least every tick_ms while `loop_want_tick` is on. */
int loop_run(struct loop *loop, int tick_ms, void (*tick)(void *arg), void *arg);
void loop_want_tick(struct loop *loop, bool on);
void loop_stop(struct loop *loop);
