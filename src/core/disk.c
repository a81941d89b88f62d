#include "core/disk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/event.h"
#include "core/keeper.h"
#include "core/private.h"

#define LOG_MODULE "disk"
#define MIB (1024ull * 1024)
#define GIB (1024 * MIB)
#define RESERVE_PARTS 20       /* the usual reserve is one of so many parts of an area */
#define RESERVE_MAX (16 * GIB) /* and no more than this, however large the disk is */
#define RESERVE_SHARE 2        /* a wanted one is at most half an area */
#define LOW_TIMES 3            /* warn when less than so many reserves are free */
#define LEAVE_PARTS 10         /* of a reserve: so much more is free when a level is left */
#define FRESH_US 10000000      /* the job looks twice in that time */
#define SIZE_TEXT 16

const char *disk_level_name(enum disk_level level)
{
    static const char *const names[] = { "ok", "low", "full" };
    return names[level];
}

const char *disk_area_name(enum disk_area area)
{
    static const char *const names[DISK_AREAS] = { "pool", "metadata", "data" };
    return names[area];
}

uint64_t disk_reserve(uint64_t size, uint64_t wanted)
{
    uint64_t usual = size / RESERVE_PARTS < RESERVE_MAX ? size / RESERVE_PARTS : RESERVE_MAX;
    return !wanted ? usual : wanted > size / RESERVE_SHARE ? size / RESERVE_SHARE : wanted;
}

enum disk_level disk_judge(const struct disk_room *room)
{
    uint64_t more = room->reserve / LEAVE_PARTS;
    if (room->size == 0)
        return DISK_OK;
    if (room->free <= room->reserve + (room->level == DISK_FULL ? more : 0))
        return DISK_FULL;
    if (room->free < LOW_TIMES * room->reserve + (room->level != DISK_OK ? more : 0))
        return DISK_LOW;
    return DISK_OK;
}

/* ---- reading ---- */

/* The size of metadata, the room that may still become metadata included, and how much of that is free. */
static void metadata_of(const struct keeper_room *k, struct disk_room *ret)
{
    uint64_t used = k->metadata_used_bytes + k->metadata_kept_bytes;
    ret->size = k->metadata_bytes ? k->metadata_bytes + k->unallocated_bytes : 0;
    ret->free = ret->size > used ? ret->size - used : 0;
}

static void judge(struct disk_reading *d, uint64_t wanted)
{
    d->worst = DISK_POOL;
    for (int i = 0; i < DISK_AREAS; i++) {
        struct disk_room *a = &d->areas[i];
        a->reserve = disk_reserve(a->size, i == DISK_METADATA ? 0 : wanted);
        a->level = disk_judge(a);
        if (a->level > d->areas[d->worst].level)
            d->worst = (enum disk_area)i;
    }
    d->level = d->areas[d->worst].level;
}

static void set_area(struct disk_room *a, uint64_t size, uint64_t free_bytes)
{
    a->size = size;
    a->free = free_bytes;
}

static void read_now(struct core *core, struct disk_reading *d)
{
    const struct keeper_request ask = { .version = KEEPER_VERSION, .op = KEEPER_ROOM };
    struct keeper_reply reply = { 0 };
    struct statvfs vfs;
    if (keeper_ask(core, &ask, &reply, NULL) >= 0) {
        d->room = reply.room;
        set_area(&d->areas[DISK_POOL], reply.room.pool_bytes, reply.room.pool_free_bytes);
        metadata_of(&reply.room, &d->areas[DISK_METADATA]);
    }
    if (core->blobs.dir >= 0 && fstatvfs(core->blobs.dir, &vfs) == 0)
        set_area(&d->areas[DISK_DATA], (uint64_t)vfs.f_blocks * vfs.f_frsize,
                 (uint64_t)vfs.f_bavail * vfs.f_frsize);
    judge(d, core->disk.reserve_bytes);
}

/* ---- saying so ---- */

static const char *size_of(uint64_t bytes, char out[SIZE_TEXT])
{
    if (bytes >= GIB)
        (void)snprintf(out, SIZE_TEXT, "%.1f GiB", (double)bytes / (double)GIB);
    else
        (void)snprintf(out, SIZE_TEXT, "%.0f MiB", (double)bytes / (double)MIB);
    return out;
}

static void tell(struct core *core, const struct disk_reading *d)
{
    static const char *const types[] = { "disk.ok", "disk.low", "disk.full" };
    const struct disk_room *a = &d->areas[d->worst];
    const char *area = disk_area_name(d->worst);
    char data[192];
    int n = snprintf(data, sizeof(data),
                     "{\"area\":\"%s\",\"size_bytes\":%" PRIu64 ",\"free_bytes\":%" PRIu64
                     ",\"reserve_bytes\":%" PRIu64 "}",
                     area, a->size, a->free, a->reserve);
    event_emit(core, OWNER_DEFAULT, NULL, types[d->level],
               n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
    unsigned long long free_mb = a->free / MIB, size_mb = a->size / MIB;
    if (d->level == DISK_FULL)
        log_error("the disk is nearly full: nothing new is made until there is room area=%s "
                  "free_mb=%llu size_mb=%llu reserve_mb=%llu",
                  area, free_mb, size_mb, (unsigned long long)(a->reserve / MIB));
    else if (d->level == DISK_LOW)
        log_warn("the disk fills up area=%s free_mb=%llu size_mb=%llu reserve_mb=%llu", area,
                 free_mb, size_mb, (unsigned long long)(a->reserve / MIB));
    else
        log_info("the disk has room again area=%s free_mb=%llu size_mb=%llu", area, free_mb,
                 size_mb);
}

static int64_t read_at(struct disk *k)
{
    (void)pthread_mutex_lock(&k->lock);
    int64_t at = k->read_us;
    (void)pthread_mutex_unlock(&k->lock);
    return at;
}

void disk_look(struct core *core)
{
    struct disk *k = &core->disk;
    struct disk_reading d;
    int64_t asked = clock_mono_us();
    (void)pthread_mutex_lock(&k->look); /* one at a time: changes are told in order */
    if (read_at(k) > asked) {           /* somebody looked while this call waited */
        (void)pthread_mutex_unlock(&k->look);
        return;
    }
    asked = clock_mono_us();
    disk_last(core, &d);
    enum disk_level before = d.level;
    read_now(core, &d);
    (void)pthread_mutex_lock(&k->lock);
    k->last = d;
    k->read_us = asked;
    (void)pthread_mutex_unlock(&k->lock);
    atomic_store(&k->level, (int)d.level);
    if (d.level != before)
        tell(core, &d);
    (void)pthread_mutex_unlock(&k->look);
}

void disk_last(struct core *core, struct disk_reading *ret_reading)
{
    (void)pthread_mutex_lock(&core->disk.lock);
    *ret_reading = core->disk.last;
    (void)pthread_mutex_unlock(&core->disk.lock);
}

/* ---- refusing ---- */

static int refuse(const struct disk_reading *d, struct err *err)
{
    static const char *const whats[DISK_AREAS] = {
        [DISK_POOL] = "the disk of this Warren is nearly full",
        [DISK_METADATA] = "the disk of this Warren is nearly full of names and small files",
        [DISK_DATA] = "the disk below this Warren's data directory is nearly full",
    };
    const struct disk_room *a = &d->areas[d->worst];
    char left[SIZE_TEXT], size[SIZE_TEXT], reserve[SIZE_TEXT];
    return err_fail(err, FAIL_NO_SPACE,
                    "%s: %s free of %s, and the last %s are kept for sandboxes that run; "
                    "delete sandboxes, checkpoints, volumes or images, or ask the operator for a "
                    "larger disk",
                    whats[d->worst], size_of(a->free, left), size_of(a->size, size),
                    size_of(a->reserve, reserve));
}

int disk_admit(struct core *core, struct err *err)
{
    struct disk_reading d;
    int64_t at = read_at(&core->disk);
    if (atomic_load(&core->disk.level) == DISK_FULL || !at || clock_mono_us() - at > FRESH_US)
        disk_look(core);
    disk_last(core, &d);
    return d.level == DISK_FULL ? refuse(&d, err) : 0;
}

int disk_go_on(struct core *core, struct err *err)
{
    struct disk_reading d;
    if (atomic_load(&core->disk.level) != DISK_FULL)
        return 0;
    disk_last(core, &d);
    return d.level == DISK_FULL ? refuse(&d, err) : 0;
}
