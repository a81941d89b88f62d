#include "core/restart.h"

#include "base/clock.h"
#include "core/fake_keeper.h"

static void ended(struct core *core, struct box *b, enum sandbox_cause cause, int64_t lived_ms)
{
    (void)pthread_mutex_lock(&core->table.lock);
    b->s.state = SANDBOX_STOPPED;
    b->s.cause = cause;
    b->s.started_ms = 1000;
    b->s.stopped_ms = 1000 + lived_ms;
    (void)pthread_mutex_unlock(&core->table.lock);
    restart_plan(core, b);
}

TEST(who_ended_by_itself_is_started_as_its_policy_says)
{
    static const struct {
        enum sandbox_cause cause;
        bool no, on_boot, always;
    } cases[] = {
        { CAUSE_STOPPED, false, false, false }, { CAUSE_TIMEOUT, false, false, false },
        { CAUSE_IDLE, false, false, false },    { CAUSE_CRASHED, false, false, true },
        { CAUSE_SHUTDOWN, false, true, true },  { CAUSE_REBOOT, false, true, true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sandbox s = { .state = SANDBOX_STOPPED, .cause = cases[i].cause };
        CHECK_EQ(restart_wanted(&s), cases[i].no);
        s.spec.restart = RESTART_ON_BOOT;
        CHECK_EQ(restart_wanted(&s), cases[i].on_boot);
        s.spec.restart = RESTART_ALWAYS;
        CHECK_EQ(restart_wanted(&s), cases[i].always);
        s.state = SANDBOX_PAUSED;
        CHECK(!restart_wanted(&s));
    }
}

TEST(one_that_does_not_stay_up_is_tried_later_each_time_and_then_no_more)
{
    struct world *w = world_new(0);
    struct sandbox s;
    struct sandbox_spec spec;
    struct err err = ERR_INIT;
    struct box *b;
    int64_t last = 0;
    unsigned tries = 0;
    sandbox_spec_init(&spec);
    spec.restart = RESTART_ALWAYS;
    CHECK_OK(sandbox_create(w->core, "default", &spec, &s, &err));
    CHECK_OK(box_hold(w->core, NULL, s.id, 1000, &b));
    ended(w->core, b, CAUSE_REBOOT, 50);
    CHECK(b->restart_ms <= clock_now_ms()); /* at once */
    b->restart_ms = b->restarts = 0;
    for (; tries < 100; tries++) {
        ended(w->core, b, CAUSE_CRASHED, 50);
        if (!b->restart_ms)
            break;
        int64_t wait = b->restart_ms - clock_now_ms();
        CHECK(wait > last && wait <= 64 * 1000);
        last = wait;
        b->restart_ms = 0; /* as if it had been started */
    }
    CHECK_EQ(tries, 6);
    ended(w->core, b, CAUSE_CRASHED, 50);
    CHECK(b->restart_ms > 0); /* a client has started it since */
    b->restart_ms = 0;
    b->restarts = 5;
    ended(w->core, b, CAUSE_CRASHED, 3600 * 1000);
    CHECK_EQ(b->restarts, 1); /* it was up for an hour */
    (void)pthread_mutex_lock(&w->core->table.lock);
    b->restart_ms = 0;
    (void)pthread_mutex_unlock(&w->core->table.lock);
    box_release(w->core, b);
    sandbox_done(&s);
    world_free(w);
}
