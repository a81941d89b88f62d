#include "core/room.h"

#include <errno.h>

#include "core/fake_keeper.h"
#include "core/team.h"

#define MIB (1024ull * 1024)

static void make_team(struct world *w, int64_t disk_mb)
{
    const int64_t quotas[QUOTA_COUNT] = { -1, -1, -1, disk_mb };
    struct team team;
    CHECK_OK(team_create(w->core, "red", quotas, &team, NULL));
}

static int64_t used(struct world *w)
{
    struct team team;
    CHECK_OK(team_get(w->core, "red", &team, NULL));
    return team.in_use[QUOTA_DISK_MB];
}

TEST(what_is_taken_counts_until_the_room_is_closed)
{
    struct world *w = world_new(0);
    struct err err = ERR_INIT;
    struct room a, b;
    make_team(w, 10);
    room_open(w->core, "red", &a);
    room_open(w->core, "red", &b);
    CHECK_OK(room_take(&a, 1, &err));
    CHECK_OK(room_take(&a, MIB - 1, &err)); /* of the same MiB */
    CHECK_EQ(used(w), 1);
    CHECK_OK(room_take(&b, 9 * MIB, &err));
    CHECK_EQ(room_take(&a, 1, &err), -EDQUOT);
    CHECK_STR(failure_name(err.failure), "quota_exceeded");
    CHECK_EQ(used(w), 10); /* a refusal takes nothing */
    room_close(&b);
    CHECK_OK(room_take(&a, 1, &err));
    room_close(&a);
    CHECK_EQ(used(w), 0);
    world_free(w);
}

TEST(what_is_lent_is_all_there_is_and_is_settled_with_what_it_came_to)
{
    struct world *w = world_new(0);
    struct err err = ERR_INIT;
    struct room a;
    uint64_t n = 0;
    make_team(w, 10);
    room_open(w->core, "red", &a);
    CHECK_OK(room_take(&a, 4 * MIB, &err));
    CHECK_OK(room_lend(&a, 100 * MIB, &n, &err));
    CHECK_EQ(n, 6 * MIB);
    CHECK_OK(room_settle(&a, 2 * MIB, &err));
    CHECK_EQ(used(w), 6);
    CHECK_OK(room_lend(&a, MIB, &n, &err));
    CHECK_EQ(n, MIB);
    CHECK_EQ(room_settle(&a, 5 * MIB, &err), -EDQUOT);
    CHECK_OK(room_settle(&a, 0, &err));
    room_close(&a);
    world_free(w);
}

static void *take_five(void *arg)
{
    return (void *)(intptr_t)room_take(arg, 5 * MIB, NULL);
}

TEST(who_needs_what_is_lent_waits_until_it_is_settled)
{
    struct world *w = world_new(0);
    struct err err = ERR_INIT;
    struct room a, b;
    uint64_t n = 0;
    pthread_t thread;
    void *result = NULL;
    make_team(w, 10);
    room_open(w->core, "red", &a);
    room_open(w->core, "red", &b);
    CHECK_OK(room_lend(&a, 0, &n, &err));
    CHECK_EQ(n, 10 * MIB);
    CHECK_EQ(room_take(&b, 11 * MIB, &err), -EDQUOT); /* can never fit: no wait */
    CHECK_EQ(pthread_create(&thread, NULL, take_five, &b), 0);
    CHECK_OK(room_settle(&a, 5 * MIB, &err));
    CHECK_EQ(pthread_join(thread, &result), 0);
    CHECK_EQ((intptr_t)result, 0);
    CHECK_EQ(used(w), 10);
    room_close(&a);
    room_close(&b);
    world_free(w);
}

TEST(a_team_without_a_quota_takes_what_it_wants)
{
    struct world *w = world_new(0);
    struct room a;
    uint64_t n = 0;
    room_open(w->core, OWNER_DEFAULT, &a);
    CHECK(!room_limited(&a));
    CHECK_OK(room_take(&a, 1ull << 50, NULL));
    CHECK_OK(room_lend(&a, 7, &n, NULL));
    CHECK_EQ(n, 7);
    CHECK_OK(room_settle(&a, 1ull << 50, NULL));
    room_close(&a);
    world_free(w);
}
