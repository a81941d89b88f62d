/* lane - one direction of a relayed connection: bytes from one socket to another, not looked at.
 *
 * They go through a pipe in the kernel (splice), which is taken from a shelf when there is something to
 * move and given back when it is empty, so that a connection on which nothing happens holds
 * none. Memory is bounded by the pipe: while its receiver is slow nothing more is read. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define LANE_SHELF 64 /* empty pipes kept for the next ones */

struct lane_shelf {
    int pipes[LANE_SHELF][2];
    size_t n;
};

void lane_shelf_done(struct lane_shelf *shelf);

struct lane {
    int pipe[2];      /* -1 while nothing is in it */
    size_t inside;    /* bytes in the pipe */
    uint64_t passed;  /* bytes that its receiver has */
    size_t may;       /* bytes that it may read before its turn is over; its owner says */
    bool ended;       /* its sender will send no more */
    bool open;        /* pipe is valid */
    struct buf early; /* goes before everything else: what was read before the lane ran */
};

enum lane_state {
    LANE_WAIT_FROM, /* for bytes to read */
    LANE_WAIT_TO,   /* for room to write */
    LANE_WAIT_TURN, /* for its owner to let it read more */
    LANE_DONE,      /* all was passed, and its receiver was told of the end */
    LANE_LOST,      /* one side broke */
    LANE_HELD,      /* for something else; lane_run does not say this */
};

void lane_init(struct lane *lane, size_t early_max);
/* As far as it goes without waiting, and no longer than a fair turn. */
enum lane_state lane_run(struct lane *lane, struct lane_shelf *shelf, int from, int to);
/* For who fills `early` by hand: 1 it is gone, 0 wait for room, below zero: lost. */
int lane_push(struct lane *lane, int to);
void lane_done(struct lane *lane, struct lane_shelf *shelf);
