#include "core/usage.h"

#include "core/count.h"
#include "core/fake_keeper.h"
#include "core/table.h"

#define GIB (1024ull * 1024 * 1024)

static struct usage_amount used(struct core *core, const char *owner)
{
    int64_t now = clock_now_ms();
    struct usage_query q = {
        .owner = owner, .from_ms = 0, .to_ms = now + 7200 * 1000, .limit = 10
    };
    struct usage_report report;
    CHECK_OK(usage_read(core, &q, &report, NULL));
    struct usage_amount total = report.total;
    usage_report_done(&report);
    return total;
}

static void make(struct core *core, char ret_id[ID_SIZE])
{
    struct sandbox_spec spec;
    struct sandbox s;
    sandbox_spec_init(&spec);
    CHECK_OK(sandbox_create(core, "default", &spec, &s, NULL));
    memcpy(ret_id, s.id, ID_SIZE);
    sandbox_done(&s);
}

/* As if it had been counted up to so long ago. */
static void back_date(struct core *core, const char *id, int64_t ms)
{
    (void)pthread_mutex_lock(&core->table.lock);
    box_find(&core->table, NULL, id)->meter.at_ms -= ms;
    (void)pthread_mutex_unlock(&core->table.lock);
}

TEST(every_microsecond_counts_once_over_stops_and_restarts)
{
    struct world *w = world_new(0);
    char id[ID_SIZE];
    struct sandbox s;
    make(w->core, id);
    fake_use(&w->k, id, 1000, GIB, GIB);
    usage_round(w->core, 0);
    CHECK_EQ(used(w->core, "default").cpu_us, 1000);
    fake_use(&w->k, id, 5000, GIB, GIB); /* while the daemon is away */
    world_restart(w, 0);
    CHECK_EQ(used(w->core, "default").cpu_us, 1000);
    usage_round(w->core, 0);
    CHECK_EQ(used(w->core, "default").cpu_us, 5000);
    usage_round(w->core, 0);
    CHECK_EQ(used(w->core, "default").cpu_us, 5000);
    fake_use(&w->k, id, 5500, GIB, GIB);
    CHECK_OK(
        sandbox_stop(w->core, "default", id, &s, NULL)); /* the last of it comes with the stop */
    sandbox_done(&s);
    CHECK_EQ(used(w->core, "default").cpu_us, 5500);
    world_restart(w, 0);
    CHECK_OK(sandbox_start(w->core, "default", id, &s, NULL)); /* counters begin anew */
    sandbox_done(&s);
    fake_use(&w->k, id, 300, GIB, GIB);
    world_restart(w, 0); /* before anything of this life was written */
    usage_round(w->core, 0);
    CHECK_EQ(used(w->core, "default").cpu_us, 5800);
    fake_use(&w->k, id, 301, GIB, GIB);
    CHECK_OK(sandbox_delete(w->core, "default", id, NULL));
    CHECK_EQ(used(w->core, "default").cpu_us, 5801);
    CHECK_EQ(used(w->core, "other").cpu_us, 0);
    world_free(w);
}

TEST(memory_is_counted_while_it_runs_and_disk_while_it_is_there)
{
    struct world *w = world_new(0);
    char id[ID_SIZE];
    struct sandbox s;
    make(w->core, id);
    fake_use(&w->k, id, 1000, GIB, 2 * GIB);
    back_date(w->core, id, 10000);
    usage_round(w->core, 0);
    struct usage_amount a = used(w->core, "default");
    CHECK(a.memory_gib_s >= 10 && a.memory_gib_s < 15);
    CHECK(a.disk_gib_s >= 20 && a.disk_gib_s < 30);
    CHECK_OK(sandbox_stop(w->core, "default", id, &s, NULL));
    sandbox_done(&s);
    a = used(w->core, "default");
    back_date(w->core, id, 100000);
    usage_round(w->core, 0);
    struct usage_amount b = used(w->core, "default");
    CHECK(b.memory_gib_s - a.memory_gib_s < 1e-6);
    CHECK(b.disk_gib_s - a.disk_gib_s >= 200 && b.disk_gib_s - a.disk_gib_s < 220);
    world_free(w);
}

TEST(what_was_used_over_hours_is_shared_among_them)
{
    struct world *w = world_new(0);
    char id[ID_SIZE];
    make(w->core, id);
    fake_use(&w->k, id, 9000000, GIB, 0);
    back_date(w->core, id, 3 * 3600 * 1000);
    usage_round(w->core, 0);
    int64_t now = clock_now_ms();
    struct usage_query q = {
        .owner = "default", .to_ms = now + 7200 * 1000, .limit = 1, .step_hours = 1
    };
    struct usage_report report;
    CHECK_OK(usage_read(w->core, &q, &report, NULL));
    CHECK(report.n_steps == 3 || report.n_steps == 4);
    CHECK_EQ(report.total.cpu_us, 9000000);
    CHECK_EQ(report.n_sandboxes, 1);
    CHECK_STR(report.sandboxes[0].sandbox, id);
    uint64_t sum = 0;
    for (size_t i = 0; i < report.n_steps; i++)
        sum += report.steps[i].amount.cpu_us;
    CHECK_EQ(sum, 9000000);
    CHECK(report.steps[1].amount.cpu_us > 2900000 && report.steps[1].amount.cpu_us < 3100000);
    usage_report_done(&report);
    world_free(w);
}

TEST(a_death_is_counted_to_its_end)
{
    struct world *w = world_new(0);
    char id[ID_SIZE];
    make(w->core, id);
    struct keeper_usage last = { .cpu_us = 777 };
    usage_died(w->core, id, &last);
    usage_died(w->core, id, &last);
    CHECK_EQ(used(w->core, "default").cpu_us, 777);
    CHECK_OK(sandbox_delete(w->core, "default", id, NULL));
    CHECK_EQ(used(w->core, "default").cpu_us, 777);
    world_free(w);
}
