#include "core/disk.h"

#include "core/event.h"
#include "core/fake_keeper.h"
#include "core/volume.h"

#define MIB (1024ull * 1024)
#define GIB (1024 * MIB)

TEST(the_reserve_is_a_twentieth_within_bounds)
{
    CHECK_EQ(disk_reserve(100 * GIB, 0), 5 * GIB);
    CHECK_EQ(disk_reserve(10000 * GIB, 0), 16 * GIB);
    CHECK_EQ(disk_reserve(100 * GIB, 20 * GIB), 20 * GIB);
    CHECK_EQ(disk_reserve(10 * GIB, 20 * GIB), 5 * GIB); /* never more than half */
    CHECK_EQ(disk_reserve(0, 0), 0);
}

TEST(a_disk_is_low_at_three_reserves_and_full_at_one)
{
    static const struct {
        uint64_t size, free;
        enum disk_level level;
    } cases[] = {
        { 0, 0, DISK_OK }, /* not known */
        { 100, 100, DISK_OK }, { 100, 15, DISK_OK },  { 100, 14, DISK_LOW },
        { 100, 6, DISK_LOW },  { 100, 5, DISK_FULL }, { 100, 0, DISK_FULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct disk_room room = { .size = cases[i].size, .free = cases[i].free };
        room.reserve = disk_reserve(room.size, 0);
        CHECK_EQ(disk_judge(&room), cases[i].level);
    }
}

TEST(a_level_is_left_with_a_little_more_than_it_was_entered_with)
{
    struct disk_room room = { .size = 2000, .free = 100, .reserve = 100 };
    room.level = disk_judge(&room);
    CHECK_EQ(room.level, DISK_FULL);
    room.free = 110;
    CHECK_EQ(disk_judge(&room), DISK_FULL);
    room.free = 111;
    room.level = disk_judge(&room);
    CHECK_EQ(room.level, DISK_LOW);
    room.free = 309;
    CHECK_EQ(disk_judge(&room), DISK_LOW);
    room.free = 310;
    CHECK_EQ(disk_judge(&room), DISK_OK);
}

static int create(struct world *w, struct sandbox *ret_s, struct err *err)
{
    struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    int r = sandbox_create(w->core, OWNER_DEFAULT, &spec, ret_s, err);
    sandbox_spec_done(&spec);
    return r;
}

TEST(nothing_new_is_made_on_a_full_disk_until_something_goes)
{
    struct world *w = world_new(0);
    struct sandbox s, more;
    struct volume v;
    struct err err = ERR_INIT;
    CHECK_OK(create(w, &s, &err));
    fake_pool(&w->k, 100 * GIB, 5 * GIB);
    disk_look(w->core);
    CHECK_EQ(create(w, &more, &err), -ENOSPC);
    CHECK_STR(failure_name(err.failure), "no_space");
    CHECK(strstr(err.msg, "5.0 GiB free of 100.0 GiB") && strstr(err.msg, "delete"));
    CHECK_EQ(volume_create(w->core, OWNER_DEFAULT, "v", GIB, &v, &err), -ENOSPC);
    CHECK_STR(failure_name(err.failure), "no_space");
    CHECK_EQ(disk_go_on(w->core, &err), -ENOSPC);
    CHECK_OK(sandbox_delete(w->core, OWNER_DEFAULT, s.id, &err)); /* always works */
    fake_pool(&w->k, 100 * GIB, 6 * GIB);
    CHECK_OK(create(w, &more, &err)); /* at once: nobody waits for the next look */
    sandbox_done(&s);
    sandbox_done(&more);
    world_free(w);
}

TEST(each_change_of_level_is_told_once)
{
    static const struct {
        uint64_t free;
        const char *type;
    } steps[] = { { 14 * GIB, "disk.low" }, { 14 * GIB, NULL },
                  { 1 * GIB, "disk.full" }, { 0, NULL },
                  { 10 * GIB, "disk.low" }, { 50 * GIB, "disk.ok" } };
    struct world *w = world_new(0);
    struct event_list list = { .next = 0 };
    int64_t since = 0;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        fake_pool(&w->k, 100 * GIB, steps[i].free);
        disk_look(w->core);
        CHECK_OK(event_read(w->core, OWNER_DEFAULT, NULL, since, 100, 0, &list, NULL));
        const char *told = NULL;
        for (size_t n = 0; n < list.n; n++)
            if (strncmp(list.items[n].type, "disk.", strlen("disk.")) == 0) {
                CHECK(!told && steps[i].type);
                told = list.items[n].type;
                CHECK_STR(told, steps[i].type);
                CHECK(strstr(list.items[n].data, "\"area\":\"pool\""));
            }
        CHECK(!told == !steps[i].type);
        since = list.next;
        event_list_done(&list);
    }
    world_free(w);
}

TEST(metadata_that_is_used_up_counts_as_full)
{
    struct world *w = world_new(0);
    struct disk_reading d;
    (void)pthread_mutex_lock(&w->k.lock);
    w->k.room = (struct keeper_room){ .pool_bytes = 100 * GIB,
                                      .pool_free_bytes = 50 * GIB,
                                      .metadata_bytes = GIB,
                                      .metadata_used_bytes = 900 * MIB,
                                      .metadata_kept_bytes = 100 * MIB };
    (void)pthread_mutex_unlock(&w->k.lock);
    disk_look(w->core);
    disk_last(w->core, &d);
    CHECK_EQ(d.level, DISK_FULL);
    CHECK_EQ(d.worst, DISK_METADATA);
    world_free(w);
}
