/* disk - how much room is left where sandboxes, images and state lie, and what follows from it.
 *
 * Each area (the pool's data, its metadata, the data directory's filesystem) keeps a reserve: once
 * no more than that is free, nothing new is made, so that sandboxes which run can go on writing and
 * there is room to delete. When less than three times the reserve is free, a line in the log and an
 * event (disk.low, disk.full, disk.ok) say so. The keeper is asked every few seconds by a job, and
 * again by whoever would be refused, so that a deletion counts at once. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core.h"
#include "wire/keeper.h"

enum disk_level { DISK_OK, DISK_LOW, DISK_FULL };

enum disk_area { DISK_POOL, DISK_METADATA, DISK_DATA, DISK_AREAS };

struct disk_room { /* of one area, in bytes; size 0: not known, or there is none */
    uint64_t size, free, reserve;
    enum disk_level level;
};

struct disk_reading {
    struct disk_room areas[DISK_AREAS];
    enum disk_area worst;
    enum disk_level level;   /* of the worst */
    struct keeper_room room; /* as the keeper says; all 0 before its first answer */
};

struct disk { /* one daemon's; part of struct core */
    pthread_mutex_t lock;
    pthread_mutex_t look; /* held over one look, the keeper included; before `lock` */
    struct disk_reading last;
    int64_t read_us;        /* when that reading began, monotonic; 0: never */
    uint64_t reserve_bytes; /* 0: a part of each area */
    _Atomic int level;      /* of the last reading */
    _Atomic bool queued;    /* a look is on its way: one is enough */
};

/* Asks now. Without a keeper only the data directory's area is new. */
void disk_look(struct core *core);
void disk_last(struct core *core, struct disk_reading *ret_reading);
/* For whoever is about to make something that stays: -ENOSPC, no_space in the reserve. */
int disk_admit(struct core *core, struct err *err);
/* The same for the next piece of what is being written; costs nothing. */
int disk_go_on(struct core *core, struct err *err);

const char *disk_level_name(enum disk_level level);
const char *disk_area_name(enum disk_area area);

/* The reserve of an area of that size; wanted 0: the usual. */
uint64_t disk_reserve(uint64_t size, uint64_t wanted);
/* room->level is the one before: to leave it takes a tenth of the reserve more, so that nothing is told
 * over and over at a border. */
enum disk_level disk_judge(const struct disk_room *room);
