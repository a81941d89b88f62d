#include "core/timers.h"

#include <errno.h>
#include <fcntl.h>

#include "core/event.h"
#include "core/fake_keeper.h"

static struct sandbox_spec plain(void)
{
    struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    return spec;
}

static void make(struct world *w, const struct sandbox_spec *spec, char ret_id[ID_SIZE])
{
    struct sandbox s;
    CHECK_OK(sandbox_create(w->core, "default", spec, &s, NULL));
    memcpy(ret_id, s.id, ID_SIZE);
    sandbox_done(&s);
}

static enum sandbox_state state_of(struct world *w, const char *id, enum sandbox_cause *ret_cause)
{
    struct sandbox s;
    struct err err = ERR_INIT;
    int r = sandbox_get(w->core, "default", id, &s, &err);
    assert_true(r >= 0 || err.failure == FAIL_SANDBOX_GONE);
    enum sandbox_state state = s.state;
    *ret_cause = s.cause;
    sandbox_done(&s);
    return state;
}

TEST(a_timeout_deletes_or_stops_as_it_was_told)
{
    struct world *w = world_new(0);
    struct sandbox_spec spec = plain();
    enum sandbox_cause cause;
    char a[ID_SIZE], b[ID_SIZE], c[ID_SIZE];
    make(w, &spec, c);
    spec.timeout_ms = 60;
    make(w, &spec, a);
    spec.on_timeout = END_STOP;
    make(w, &spec, b);
    WAIT_FOR(state_of(w, a, &cause) == SANDBOX_GONE);
    CHECK_EQ(cause, CAUSE_TIMEOUT);
    WAIT_FOR(state_of(w, b, &cause) == SANDBOX_STOPPED);
    CHECK_EQ(cause, CAUSE_TIMEOUT);
    CHECK_EQ(fake_has(&w->k, a, NULL), -1);
    CHECK_EQ(fake_has(&w->k, b, NULL), 0);
    CHECK_EQ(state_of(w, c, &cause), SANDBOX_RUNNING);
    struct sandbox s;
    CHECK_OK(sandbox_start(w->core, "default", b, &s, NULL)); /* and its time runs anew */
    CHECK(s.expires_ms > 0);
    sandbox_done(&s);
    WAIT_FOR(state_of(w, b, &cause) == SANDBOX_STOPPED);
    world_free(w);
}

TEST(a_timeout_that_is_taken_back_does_not_come)
{
    struct world *w = world_new(0);
    struct sandbox_spec spec = plain();
    struct sandbox s;
    enum sandbox_cause cause;
    char a[ID_SIZE];
    spec.timeout_ms = 1000;
    make(w, &spec, a);
    spec.timeout_ms = 0;
    CHECK_OK(sandbox_update(w->core, "default", a, &spec, CHANGE_TIMEOUT, &s, NULL));
    CHECK_EQ(s.expires_ms, 0);
    sandbox_done(&s);
    (void)usleep(1200000);
    CHECK_EQ(state_of(w, a, &cause), SANDBOX_RUNNING);
    spec.timeout_ms = 10;
    CHECK_OK(sandbox_update(w->core, "default", a, &spec, CHANGE_TIMEOUT, &s, NULL));
    sandbox_done(&s);
    WAIT_FOR(state_of(w, a, &cause) == SANDBOX_GONE);
    world_free(w);
}

TEST(an_idle_sandbox_stops_and_a_used_one_does_not)
{
    struct world *w = world_new(0);
    struct sandbox_spec spec = plain();
    struct sandbox s;
    enum sandbox_cause cause;
    char idle[ID_SIZE], used[ID_SIZE], working[ID_SIZE];
    make(w, &spec, working);
    fake_works(&w->k, working, true);
    make(w, &spec, used);
    CHECK_OK(sandbox_enter(w->core, "default", used, &s, NULL)); /* a request is inside */
    sandbox_done(&s);
    spec.idle_timeout_ms = 800; /* once they are at work, however long that took */
    CHECK_OK(sandbox_update(w->core, "default", working, &spec, CHANGE_IDLE, &s, NULL));
    sandbox_done(&s);
    CHECK_OK(sandbox_update(w->core, "default", used, &spec, CHANGE_IDLE, &s, NULL));
    sandbox_done(&s);
    make(w, &spec, idle);
    WAIT_FOR(state_of(w, idle, &cause) == SANDBOX_STOPPED);
    CHECK_EQ(cause, CAUSE_IDLE);
    (void)usleep(1200000);
    CHECK_EQ(state_of(w, used, &cause), SANDBOX_RUNNING);
    CHECK_EQ(state_of(w, working, &cause), SANDBOX_RUNNING);
    sandbox_leave(w->core, used);
    fake_works(&w->k, working, false);
    WAIT_FOR(state_of(w, used, &cause) == SANDBOX_STOPPED);
    WAIT_FOR(state_of(w, working, &cause) == SANDBOX_STOPPED);
    world_free(w);
}

TEST(an_idle_sandbox_may_be_deleted_instead)
{
    struct world *w = world_new(0);
    struct sandbox_spec spec = plain();
    enum sandbox_cause cause;
    char id[ID_SIZE];
    spec.idle_timeout_ms = 80;
    spec.on_idle = END_DELETE;
    make(w, &spec, id);
    WAIT_FOR(state_of(w, id, &cause) == SANDBOX_GONE);
    CHECK_EQ(cause, CAUSE_IDLE);
    world_free(w);
}

TEST(a_crash_is_a_stop_with_that_cause_and_does_not_outlive_its_timeout)
{
    struct world *w = world_new(0);
    struct sandbox_spec spec = plain();
    enum sandbox_cause cause;
    char id[ID_SIZE];
    spec.timeout_ms = 2000;
    make(w, &spec, id);
    WAIT_FOR(fake_asked(&w->k, KEEPER_WATCH) == 1);
    fake_die(&w->k, id);
    WAIT_FOR(state_of(w, id, &cause) == SANDBOX_STOPPED);
    CHECK_EQ(cause, CAUSE_CRASHED);
    struct event_list list;
    CHECK_OK(event_read(w->core, "default", id, 0, 10, 2000, &list, NULL));
    event_list_done(&list);
    WAIT_FOR(state_of(w, id, &cause) == SANDBOX_GONE);
    CHECK_EQ(cause, CAUSE_TIMEOUT);
    world_free(w);
}

TEST(an_end_that_fails_is_tried_again)
{
    struct world *w = world_new(0);
    struct sandbox_spec spec = plain();
    enum sandbox_cause cause;
    char id[ID_SIZE];
    spec.timeout_ms = 50;
    spec.on_timeout = END_STOP;
    fake_fail_next(&w->k, KEEPER_STOP, EIO, "internal");
    make(w, &spec, id);
    WAIT_FOR(fake_asked(&w->k, KEEPER_STOP) == 1);
    WAIT_FOR(state_of(w, id, &cause) == SANDBOX_STOPPED);
    CHECK_EQ(fake_asked(&w->k, KEEPER_STOP), 2);
    world_free(w);
}

TEST(an_idle_sandbox_is_frozen_and_whoever_enters_wakes_it)
{
    struct world *w = world_new(0);
    struct sandbox_spec spec = plain();
    struct sandbox s;
    enum sandbox_cause cause;
    char id[ID_SIZE];
    spec.freeze_after_ms = 60;
    spec.idle_timeout_ms = 2000;
    make(w, &spec, id);
    WAIT_FOR(fake_asked(&w->k, KEEPER_FREEZE) == 1);
    CHECK_OK(sandbox_enter(w->core, "default", id, &s, NULL));
    CHECK_EQ(s.frozen_ms, 0);
    sandbox_done(&s);
    CHECK_EQ(fake_asked(&w->k, KEEPER_THAW), 1);
    CHECK_OK(sandbox_get(w->core, "default", id, &s, NULL));
    CHECK_EQ(sandbox_shown(&s), SANDBOX_RUNNING);
    sandbox_done(&s);
    sandbox_leave(w->core, id);
    WAIT_FOR(fake_asked(&w->k, KEEPER_FREEZE) == 2);
    WAIT_FOR(state_of(w, id, &cause) == SANDBOX_STOPPED); /* and woken for a proper stop */
    CHECK_EQ(cause, CAUSE_IDLE);
    CHECK_EQ(fake_asked(&w->k, KEEPER_THAW), 2);
    world_free(w);
}

TEST(one_that_cannot_be_frozen_is_tried_again)
{
    struct world *w = world_new(0);
    struct sandbox_spec spec = plain();
    char id[ID_SIZE];
    spec.freeze_after_ms = 60;
    fake_fail_next(&w->k, KEEPER_FREEZE, EIO, "internal");
    make(w, &spec, id);
    WAIT_FOR(fake_asked(&w->k, KEEPER_FREEZE) == 2);
    struct sandbox s = { 0 };
    WAIT_FOR((sandbox_done(&s), sandbox_get(w->core, "default", id, &s, NULL) >= 0) &&
             sandbox_shown(&s) == SANDBOX_FROZEN);
    sandbox_done(&s);
    world_free(w);
}
