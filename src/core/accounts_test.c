#include "core/fake_keeper.h"
#include "core/ledger.h"
#include "core/network.h"
#include "core/room.h"
#include "core/spec.h"
#include "core/team.h"

#define MIB (1024ull * 1024)
#define DISK_MB 16
#define WAIT_MS 10000

static void make_team(struct world *w, int64_t disk_mb)
{
    const int64_t quotas[QUOTA_COUNT] = { -1, -1, -1, disk_mb };
    struct team team;
    CHECK_OK(team_create(w->core, "red", quotas, &team, NULL));
}

static int make(struct world *w, char ret_id[ID_SIZE])
{
    struct sandbox_spec spec;
    struct sandbox s;
    struct err err = ERR_INIT;
    sandbox_spec_init(&spec);
    spec.disk_bytes = DISK_MB * MIB;
    int r = sandbox_create(w->core, "red", &spec, &s, &err);
    sandbox_spec_done(&spec);
    if (r >= 0) {
        memcpy(ret_id, s.id, ID_SIZE);
        sandbox_done(&s);
    }
    return r;
}

/* The sandbox tries something and is refused: a line in its log. */
static void log_one(struct world *w, const char *id)
{
    struct broker_record rec = { .type = BROKER_RECORD, .wall_ms = 1 };
    memcpy(rec.sandbox, id, ID_SIZE);
    (void)snprintf(rec.name, sizeof(rec.name), "example.com");
    ledger_record(w->core, &rec);
    ledger_settle(w->core);
}

static int64_t accounts_mb(struct world *w, int64_t *ret_all_mb)
{
    struct team team;
    CHECK_OK(team_get(w->core, "red", &team, NULL));
    *ret_all_mb = team.in_use[QUOTA_DISK_MB];
    return team.disk_mb[STORED_ACCOUNTS];
}

static bool has_account(struct world *w, const char *id)
{
    struct account a;
    if (ledger_enter(w->core, id, &a) < 0)
        return false;
    ledger_leave(w->core, &a);
    return true;
}

static bool loses_account(struct world *w, const char *id)
{
    for (int64_t end = clock_mono_ms() + WAIT_MS; clock_mono_ms() < end; (void)poll(NULL, 0, 2))
        if (!has_account(w, id))
            return true;
    return false;
}

TEST(accounts_count_for_the_quota_also_when_their_sandbox_is_gone)
{
    struct world *w = world_new(0);
    char id[ID_SIZE], other[ID_SIZE];
    int64_t all;
    make_team(w, 100);
    CHECK_OK(make(w, id));
    CHECK_EQ(accounts_mb(w, &all), 0);
    log_one(w, id);
    CHECK_EQ(accounts_mb(w, &all), 1);
    CHECK_EQ(all, DISK_MB + 1);
    world_restart(w, 0);
    CHECK_EQ(accounts_mb(w, &all), 1);
    CHECK_OK(sandbox_delete(w->core, "red", id, NULL));
    CHECK_EQ(accounts_mb(w, &all), 1);
    CHECK_EQ(all, 1);
    world_restart(w, 0);
    CHECK_EQ(accounts_mb(w, &all), 1);
    CHECK_OK(make(w, other)); /* there is room for both */
    log_one(w, other);
    CHECK(has_account(w, id));
    world_free(w);
}

TEST(an_account_of_a_sandbox_that_is_gone_gives_way_and_no_other)
{
    struct world *w = world_new(0);
    char gone[ID_SIZE], kept[ID_SIZE], id[ID_SIZE];
    int64_t all;
    make_team(w, 2 * DISK_MB);
    CHECK_OK(make(w, gone));
    log_one(w, gone);
    CHECK_OK(sandbox_delete(w->core, "red", gone, NULL));
    CHECK_OK(make(w, kept));
    CHECK(has_account(w, gone));
    CHECK_OK(make(w, id));
    CHECK(loses_account(w, gone));
    CHECK_EQ(accounts_mb(w, &all), 0);
    CHECK_EQ(all, 2 * DISK_MB);
    log_one(w, kept); /* what happened is written down, though the quota is full */
    CHECK_EQ(accounts_mb(w, &all), 1);
    CHECK_EQ(all, 2 * DISK_MB + 1);
    CHECK_OK(sandbox_delete(w->core, "red", id, NULL));
    CHECK_EQ(make(w, id), -EDQUOT);
    CHECK(has_account(w, kept));
    world_free(w);
}

TEST(accounts_of_a_team_go_with_it)
{
    struct world *w = world_new(0);
    char id[ID_SIZE];
    make_team(w, 100);
    CHECK_OK(make(w, id));
    log_one(w, id);
    CHECK_OK(sandbox_delete(w->core, "red", id, NULL));
    CHECK_OK(team_remove(w->core, "red", NULL));
    CHECK(loses_account(w, id));
    world_free(w);
}
