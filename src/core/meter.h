/* meter - what one sandbox has used, from readings of counters that start anew with each life.
 *
 * Cpu time is exact: what is added is the difference to the last reading, however long ago that
 * was and whichever daemon took it. Memory and disk are integrated: between two close readings by
 * their mean, over a gap by what was last known. Pure arithmetic. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct meter {
    int64_t at_ms;   /* counted up to here; 0: not begun */
    int64_t life_ms; /* when the life began that cpu_us is of */
    bool running;
    bool asleep; /* its work stands still: what its memory takes is not counted */
    bool memory_known, disk_known;
    uint64_t cpu_us; /* the counters as last read */
    uint64_t memory_bytes, disk_bytes;
    uint64_t rx_bytes, tx_bytes; /* counted of its network */
};

struct meter_reading {
    uint64_t cpu_us, memory_bytes, disk_bytes;
    bool dead; /* of one that has just ended: its memory says nothing */
};

struct usage_amount {
    uint64_t cpu_us;
    double memory_gib_s, disk_gib_s;
    uint64_t rx_bytes, tx_bytes;
};

void meter_start(struct meter *m, int64_t now_ms, uint64_t cpu_us); /* a life begins at cpu_us */
void meter_stop(struct meter *m);

/* Counts on to now_ms; reading NULL: nothing new is known. gap_ms: readings further apart have a
 * gap between them. */
struct usage_amount meter_advance(struct meter *m, int64_t now_ms,
                                  const struct meter_reading *reading, int64_t gap_ms);
