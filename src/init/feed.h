/* feed - a process's input: who waits to have bytes taken by its pipe or terminal.
 *
 * There is no queue of bytes: those who feed keep their own and stand in line, so input that a
 * process does not read costs its sender's connection, and nothing else. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "init/poller.h"

struct proc;

struct feeder {
    TAILQ_ENTRY(feeder) link;
    struct proc *proc; /* NULL: not in line */
    const char *p;     /* kept until done */
    size_t n;
    bool eof; /* after the bytes, the end */
    /* 0 when all was taken; -EPIPE: closed; -ESRCH: the process ended. May come before feed_add
     * returns. */
    void (*done)(struct feeder *f, int r);
};

TAILQ_HEAD(feeders, feeder);

struct feed {
    struct watch watch; /* the pipe; a terminal's input goes through its stream */
    struct feeders line;
    int64_t broken_at; /* monotonic; 0: not broken */
};

void feed_init(struct proc *p);
void feed_open(struct proc *p, int fd); /* takes it: non-blocking, a pipe's writing end */
void feed_add(struct proc *p, struct feeder *f);
void feed_remove(struct feeder *f); /* its sender is gone; NULL proc is fine */
bool feed_waits(const struct proc *p);
void feed_step(struct proc *p);
/* It takes no more. Mostly because the process is ending, of which we hear in a moment: those in
 * line are told then, or by feed_tick that it was closed. */
void feed_break(struct proc *p);
void feed_tick(struct proc *p, int64_t now);
void feed_end(struct proc *p, int r); /* closed from now on; those in line are told r */
