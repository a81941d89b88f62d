#include "core/pause.h"

#include "core/checkpoint.h"
#include "core/event.h"
#include "core/fake_keeper.h"
#include "core/row.h"

static void make(struct world *w, enum sandbox_wake wake, struct sandbox *ret_s)
{
    _cleanup_(sandbox_spec_done) struct sandbox_spec spec;
    struct err err = ERR_INIT;
    sandbox_spec_init(&spec);
    spec.wake = wake;
    if (sandbox_create(w->core, "default", &spec, ret_s, &err) < 0)
        fail_msg("create: %s", err.msg);
}

static void paused(struct world *w, const char *id, struct sandbox *ret_s)
{
    struct err err = ERR_INIT;
    if (sandbox_pause(w->core, "default", id, ret_s, &err) < 0)
        fail_msg("pause: %s", err.msg);
    CHECK_EQ(ret_s->state, SANDBOX_PAUSED);
    CHECK_EQ(fake_has(&w->k, id, NULL), 0);
}

static void make_paused(struct world *w, enum sandbox_wake wake, struct sandbox *ret_s,
                        struct sandbox *ret_paused)
{
    make(w, wake, ret_s);
    paused(w, ret_s->id, ret_paused);
}

static enum sandbox_state state_of(struct world *w, const char *id)
{
    struct sandbox s;
    CHECK_OK(sandbox_get(w->core, "default", id, &s, NULL));
    enum sandbox_state state = s.state;
    sandbox_done(&s);
    return state;
}

static size_t points(struct world *w)
{
    (void)pthread_mutex_lock(&w->k.lock);
    size_t n = w->k.n_points;
    (void)pthread_mutex_unlock(&w->k.lock);
    return n;
}

/* What the record says, as a daemon that died in the midst would have left it. */
static void record(struct world *w, const struct sandbox *s, enum sandbox_state state,
                   const char *point)
{
    struct sandbox as = *s;
    as.state = state;
    (void)snprintf(as.spec.paused, sizeof(as.spec.paused), "%s", point);
    CHECK_OK(row_save(w->core, &as, WORLD_TREE, NULL));
}

TEST(a_paused_sandbox_goes_on_from_its_memory_which_is_then_forgotten)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, p = { 0 }, t = { 0 };
    struct fake_cell cell;
    struct checkpoint *list;
    size_t n;
    make_paused(w, WAKE_AUTO, &s, &p);
    CHECK_EQ(points(w), 1);
    CHECK_OK(checkpoint_list(w->core, "default", NULL, &list, &n, NULL));
    CHECK_EQ(n, 0); /* not the user's own */
    checkpoint_list_free(list, n);
    CHECK_EQ(checkpoint_remove(w->core, "default", NULL, p.spec.paused, NULL), -EBUSY);
    CHECK_OK(sandbox_start(w->core, "default", s.id, &t, NULL));
    CHECK_EQ(t.state, SANDBOX_RUNNING);
    CHECK_EQ(fake_has(&w->k, s.id, &cell), 1);
    CHECK_STR(cell.from, p.spec.paused);
    CHECK_STR(t.spec.paused, "");
    CHECK_EQ(points(w), 0);
}

TEST(what_cannot_be_dumped_runs_on)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, t = { 0 };
    struct err err = ERR_INIT;
    make(w, WAKE_AUTO, &s);
    fake_fail_next(&w->k, KEEPER_POINT_PUT, EBUSY, "cannot_dump");
    CHECK_EQ(sandbox_pause(w->core, "default", s.id, &t, &err), -EBUSY);
    CHECK_STR(failure_name(err.failure), "cannot_dump");
    CHECK_EQ(state_of(w, s.id), SANDBOX_RUNNING);
    world_restart(w, 0);
    CHECK_EQ(state_of(w, s.id), SANDBOX_RUNNING);
}

TEST(an_answer_that_was_lost_is_found_out)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, p = { 0 };
    make(w, WAKE_AUTO, &s);
    fake_drop_next(&w->k, KEEPER_POINT_PUT);
    paused(w, s.id, &p);
    CHECK_EQ(points(w), 1);
    world_restart(w, 0);
    CHECK_EQ(state_of(w, s.id), SANDBOX_PAUSED);
    CHECK_EQ(points(w), 1);
}

TEST(a_pause_that_a_crash_cut_is_finished)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, p = { 0 };
    make(w, WAKE_AUTO, &s);
    record(w, &s, SANDBOX_PAUSING, "point00000000000000a"); /* before the keeper was asked */
    world_restart(w, 0);
    CHECK_EQ(state_of(w, s.id), SANDBOX_PAUSED);
    CHECK_EQ(fake_has(&w->k, s.id, NULL), 0);
    CHECK_OK(sandbox_get(w->core, "default", s.id, &p, NULL));
    record(w, &p, SANDBOX_PAUSING, p.spec.paused); /* after it, before its answer was recorded */
    CHECK_OK(store_checkpoint_remove(w->core->store, p.spec.paused, NULL));
    world_restart(w, 0);
    CHECK_EQ(state_of(w, s.id), SANDBOX_PAUSED);
    CHECK_EQ(points(w), 1);
    sandbox_done(&p);
    CHECK_OK(sandbox_start(w->core, "default", s.id, &p, NULL));
    CHECK_EQ(points(w), 0);
}

TEST(a_resume_that_a_crash_cut_is_finished_or_undone)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, p = { 0 }, t = { 0 };
    make_paused(w, WAKE_AUTO, &s, &p);
    unsigned filled = fake_asked(&w->k, KEEPER_BOX_PUT);
    record(w, &p, SANDBOX_RESUMING, p.spec.paused);
    world_restart(w, 0);
    CHECK_EQ(state_of(w, s.id), SANDBOX_PAUSED); /* nothing of it ran, or nobody knows of it */
    CHECK_EQ(fake_asked(&w->k, KEEPER_BOX_PUT), filled + 1);
    CHECK_OK(sandbox_start(w->core, "default", s.id, &t, NULL));
    CHECK_EQ(points(w), 0);
    record(w, &t, SANDBOX_RESUMING, "point00000000000000a");
    world_restart(w, 0);
    CHECK_EQ(state_of(w, s.id), SANDBOX_RUNNING); /* it does run */
}

TEST(one_whose_limits_cannot_be_set_does_not_run)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, p = { 0 }, t = { 0 };
    make_paused(w, WAKE_AUTO, &s, &p);
    record(w, &p, SANDBOX_RESUMING, p.spec.paused);
    fake_find(&w->k, s.id)->running = true; /* it had come back when the daemon died */
    fake_fail_next(&w->k, KEEPER_LIMITS, EIO, "internal");
    world_restart(w, 0);
    CHECK_EQ(state_of(w, s.id), SANDBOX_PAUSED);
    CHECK_EQ(fake_has(&w->k, s.id, NULL), 0);
    CHECK_OK(sandbox_start(w->core, "default", s.id, &t, NULL));
    CHECK_EQ(t.state, SANDBOX_RUNNING);
}

TEST(a_failed_resume_leaves_it_paused)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, p = { 0 }, t = { 0 };
    struct err err = ERR_INIT;
    make_paused(w, WAKE_AUTO, &s, &p);
    fake_fail_next(&w->k, KEEPER_MAKE, EBUSY, "cannot_restore");
    CHECK_EQ(sandbox_start(w->core, "default", s.id, &t, &err), -EBUSY);
    CHECK_STR(failure_name(err.failure), "cannot_restore");
    CHECK_EQ(state_of(w, s.id), SANDBOX_PAUSED);
    CHECK_EQ(points(w), 1);
    CHECK_OK(sandbox_resume(w->core, "default", s.id, false, &t, &err)); /* on its files alone */
    CHECK_EQ(t.state, SANDBOX_RUNNING);
    CHECK_EQ(points(w), 0);
}

TEST(entering_resumes_it_unless_it_says_never)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, p = { 0 }, t = { 0 };
    struct err err = ERR_INIT;
    make_paused(w, WAKE_AUTO, &s, &p);
    CHECK_EQ(sandbox_enter_awake(w->core, "default", s.id, &t, &err), -ESRCH);
    CHECK_OK(sandbox_enter(w->core, "default", s.id, &t, &err));
    CHECK_EQ(t.state, SANDBOX_RUNNING);
    sandbox_leave(w->core, s.id);
    sandbox_done(&s);
    sandbox_done(&p);
    sandbox_done(&t);
    make_paused(w, WAKE_NEVER, &s, &p);
    CHECK_EQ(sandbox_enter(w->core, "default", s.id, &t, &err), -ESRCH);
    CHECK_STR(failure_name(err.failure), "sandbox_not_running");
}

TEST(a_checkpoint_with_memory_of_a_paused_one_outlives_its_resume)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, p = { 0 }, t = { 0 };
    struct checkpoint c;
    static const struct checkpoint_ask ask = { .name = "kept", .reason = "asked", .memory = true };
    make_paused(w, WAKE_AUTO, &s, &p);
    CHECK_OK(checkpoint_create(w->core, "default", s.id, &ask, &c, NULL));
    CHECK_STR(c.id, p.spec.paused);
    CHECK(c.memory);
    checkpoint_done(&c);
    CHECK_EQ(checkpoint_create(w->core, "default", s.id, &ask, &c, NULL), -EEXIST);
    CHECK_OK(sandbox_start(w->core, "default", s.id, &t, NULL));
    CHECK_EQ(points(w), 1);
    sandbox_done(&t);
    CHECK_OK(checkpoint_restore(w->core, "default", s.id, "kept", true, &t, NULL));
    CHECK_EQ(t.state, SANDBOX_RUNNING);
    CHECK_EQ(points(w), 1);
}

TEST(a_deleted_one_takes_its_memory_along)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, p = { 0 };
    make_paused(w, WAKE_AUTO, &s, &p);
    CHECK_OK(sandbox_delete(w->core, "default", s.id, NULL));
    CHECK_EQ(points(w), 0);
}

static void taken(struct world *w, const char *id, const char *name, bool memory)
{
    struct checkpoint c;
    const struct checkpoint_ask ask = { .name = name, .reason = "asked", .memory = memory };
    CHECK_OK(checkpoint_create(w->core, "default", id, &ask, &c, NULL));
    checkpoint_done(&c);
}

TEST(processes_that_do_not_come_back_cost_no_files)
{
    struct world *w = world_new(0);
    struct sandbox s, t;
    struct fake_cell cell;
    struct err err = ERR_INIT;
    make(w, WAKE_AUTO, &s);
    taken(w, s.id, "then", true);
    fake_write(&w->k, s.id, 7);
    taken(w, s.id, "later", false);
    fake_write(&w->k, s.id, 8);
    fake_fail_next(&w->k, KEEPER_MAKE, EBUSY, "cannot_restore");
    CHECK_EQ(checkpoint_restore(w->core, "default", s.id, "then", true, &t, &err), -EBUSY);
    CHECK_STR(failure_name(err.failure), "cannot_restore");
    CHECK_EQ(state_of(w, s.id), SANDBOX_RUNNING);
    CHECK_EQ(fake_has(&w->k, s.id, &cell), 1);
    CHECK_EQ(cell.files, 8);
    CHECK_STR(cell.from, ""); /* its own processes were ended: it is started anew */
    CHECK_EQ(points(w), 2);
    world_restart(w, 0);
    CHECK_EQ(state_of(w, s.id), SANDBOX_RUNNING);
    CHECK_OK(checkpoint_restore(w->core, "default", s.id, "then", true, &t, &err));
    CHECK_EQ(fake_has(&w->k, s.id, &cell), 1);
    CHECK_EQ(cell.files, 0);
    CHECK_EQ(points(w), 2);
    sandbox_done(&s);
    sandbox_done(&t);
    world_free(w);
}

TEST(files_that_cannot_be_put_back_are_a_checkpoint)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, t = { 0 };
    struct fake_cell cell;
    struct checkpoint *list;
    struct err err = ERR_INIT;
    size_t n;
    make(w, WAKE_AUTO, &s);
    taken(w, s.id, "then", true);
    fake_write(&w->k, s.id, 8);
    fake_fail_times(&w->k, KEEPER_BOX_PUT, 2, EIO, "internal");
    CHECK_EQ(checkpoint_restore(w->core, "default", s.id, "then", true, &t, &err), -EIO);
    CHECK_EQ(state_of(w, s.id), SANDBOX_PAUSED);
    world_restart(w, 0);
    CHECK_OK(checkpoint_list(w->core, "default", s.id, &list, &n, NULL));
    CHECK_EQ(n, 2);
    size_t kept =
        strcmp(list[0].reason, "restore") == 0 ? 0 : 1; /* both may be of one millisecond */
    CHECK_STR(list[kept].reason, "restore");
    CHECK_OK(checkpoint_restore(w->core, "default", s.id, list[kept].id, false, &t, &err));
    checkpoint_list_free(list, n);
    CHECK_EQ(fake_has(&w->k, s.id, &cell), 1);
    CHECK_EQ(cell.files, 8);
}

TEST(one_that_is_paused_stays_so_if_others_processes_do_not_come)
{
    struct world *w = world_new(0);
    struct sandbox s, p, t;
    struct fake_cell cell;
    make(w, WAKE_AUTO, &s);
    taken(w, s.id, "then", true);
    fake_write(&w->k, s.id, 7);
    paused(w, s.id, &p);
    fake_fail_next(&w->k, KEEPER_MAKE, EBUSY, "cannot_restore");
    CHECK_EQ(checkpoint_restore(w->core, "default", s.id, "then", true, &t, NULL), -EBUSY);
    CHECK_EQ(state_of(w, s.id), SANDBOX_PAUSED);
    world_restart(w, 0);
    CHECK_EQ(state_of(w, s.id), SANDBOX_PAUSED);
    CHECK_OK(sandbox_start(w->core, "default", s.id, &t, NULL));
    CHECK_EQ(fake_has(&w->k, s.id, &cell), 1);
    CHECK_STR(cell.from, p.spec.paused); /* with its own */
    CHECK_EQ(cell.files, 7);
    CHECK_EQ(points(w), 1);
    sandbox_done(&s);
    sandbox_done(&p);
    sandbox_done(&t);
    world_free(w);
}

TEST(what_a_crash_left_of_a_pause_goes)
{
    struct world *w = world_new(0);
    struct sandbox s, p;
    make(w, WAKE_AUTO, &s);
    paused(w, s.id, &p);
    record(w, &p, SANDBOX_STOPPED, ""); /* stopped, and its memory was to be removed next */
    world_restart(w, 0);
    CHECK_EQ(state_of(w, s.id), SANDBOX_STOPPED);
    WAIT_FOR(points(w) == 0);
    sandbox_done(&s);
    sandbox_done(&p);
    world_free(w);
}

TEST(a_pause_that_waits_for_its_next_try_is_in_nobodys_way)
{
    struct world *w = world_new(0);
    struct sandbox s, t;
    struct err err = ERR_INIT;
    make(w, WAKE_AUTO, &s);
    for (int i = 0; i < 3; i++) {
        fake_fail_next(&w->k, KEEPER_POINT_PUT, EBUSY, "sandbox_busy");
        CHECK_EQ(sandbox_pause(w->core, "default", s.id, &t, &err), -EBUSY);
        CHECK_EQ(state_of(w, s.id), SANDBOX_PAUSING);
        if (i == 0) {
            paused(w, s.id, &t);
            sandbox_done(&t);
            CHECK_OK(sandbox_resume(w->core, "default", s.id, true, &t, &err));
            CHECK_EQ(t.state, SANDBOX_RUNNING);
        } else if (i == 1) {
            CHECK_OK(sandbox_enter(w->core, "default", s.id, &t, &err));
            sandbox_leave(w->core, s.id);
        } else {
            CHECK_OK(sandbox_stop(w->core, "default", s.id, &t, &err));
            CHECK_EQ(t.state, SANDBOX_STOPPED);
        }
        sandbox_done(&t);
    }
    CHECK_EQ(points(w), 0);
    sandbox_done(&s);
    world_free(w);
}

static void lose_point(struct world *w, const char *id)
{
    struct keeper_request q = { .op = KEEPER_POINT_RM };
    memcpy(q.point, id, ID_SIZE);
    (void)pthread_mutex_lock(&w->k.lock);
    fake_point_rm(&w->k, &q);
    (void)pthread_mutex_unlock(&w->k.lock);
}

TEST(one_whose_memory_a_power_cut_took_can_be_started_on_its_files)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, p = { 0 }, t = { 0 };
    struct fake_cell cell;
    struct err err = ERR_INIT;
    make(w, WAKE_AUTO, &s);
    fake_write(&w->k, s.id, 7);
    paused(w, s.id, &p);
    lose_point(w, p.spec.paused);
    CHECK_EQ(sandbox_start(w->core, "default", s.id, &t, &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "checkpoint_not_found");
    world_restart(w, 0); /* of which nobody knows whether its files are in place */
    CHECK_EQ(state_of(w, s.id), SANDBOX_PAUSED);
    CHECK_OK(sandbox_stop(w->core, "default", s.id, &t, &err));
    CHECK_EQ(t.state, SANDBOX_STOPPED);
    sandbox_done(&t);
    CHECK_OK(sandbox_start(w->core, "default", s.id, &t, &err));
    CHECK_EQ(fake_has(&w->k, s.id, &cell), 1);
    CHECK_EQ(cell.files, 7);
    CHECK_STR(cell.from, "");
}

TEST(what_a_pause_kept_stays_although_its_record_has_to_wait)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, p = { 0 };
    make_paused(w, WAKE_AUTO, &s, &p);
    record(w, &p, SANDBOX_PAUSING, p.spec.paused); /* kept, and not recorded when the daemon died */
    CHECK_OK(store_checkpoint_remove(w->core->store, p.spec.paused, NULL));
    fake_fail_next(&w->k, KEEPER_POINT_PUT, EBUSY,
                   "sandbox_busy"); /* nor by the next one at once */
    world_restart(w, 0);
    CHECK_EQ(points(w), 1);
    WAIT_FOR(state_of(w, s.id) == SANDBOX_PAUSED);
    CHECK_EQ(points(w), 1);
}

TEST(a_change_of_one_whose_files_are_not_in_place_does_not_hide_that)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, p = { 0 }, t = { 0 };
    _cleanup_(sandbox_spec_done) struct sandbox_spec spec;
    make_paused(w, WAKE_AUTO, &s, &p);
    /* Its processes came back in part, and wrote; the keeper could not undo it. */
    fake_drop_next(&w->k, KEEPER_MAKE);
    fake_fail_times(&w->k, KEEPER_BOX_PUT, 2, EIO, "internal");
    CHECK(sandbox_start(w->core, "default", s.id, &t, NULL) < 0);
    CHECK_EQ(state_of(w, s.id), SANDBOX_PAUSED);
    fake_write(&w->k, s.id, 99);
    sandbox_spec_init(&spec);
    spec.timeout_ms = 1000000;
    CHECK_OK(sandbox_update(w->core, "default", s.id, &spec, CHANGE_TIMEOUT, &t, NULL));
    sandbox_done(&t);
    world_restart(w, 0);
    CHECK_OK(sandbox_start(w->core, "default", s.id, &t, NULL));
    struct fake_cell cell;
    CHECK_EQ(fake_has(&w->k, s.id, &cell), 1);
    CHECK_EQ(cell.files, 0);
}

TEST(a_restore_that_fails_leaves_a_paused_one_all_that_it_had)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, p = { 0 }, t = { 0 };
    struct fake_cell cell;
    struct err err = ERR_INIT;
    make(w, WAKE_AUTO, &s);
    taken(w, s.id, "then", false);
    fake_write(&w->k, s.id, 7);
    paused(w, s.id, &p);
    fake_fail_next(&w->k, KEEPER_BOX_PUT, ENOSPC, "no_space");
    CHECK_EQ(checkpoint_restore(w->core, "default", s.id, "then", false, &t, &err), -ENOSPC);
    CHECK_EQ(state_of(w, s.id), SANDBOX_PAUSED);
    CHECK_EQ(points(w), 2);
    world_restart(w, 0);
    CHECK_EQ(state_of(w, s.id), SANDBOX_PAUSED);
    CHECK_OK(sandbox_start(w->core, "default", s.id, &t, NULL));
    CHECK_EQ(fake_has(&w->k, s.id, &cell), 1);
    CHECK_STR(cell.from, p.spec.paused);
    CHECK_EQ(cell.files, 7);
    sandbox_done(&t);
    sandbox_done(&p);
    paused(w, s.id, &p);
    CHECK_OK(checkpoint_restore(w->core, "default", s.id, "then", false, &t, &err));
    CHECK_EQ(fake_has(&w->k, s.id, &cell), 1);
    CHECK_STR(cell.from, "");
    CHECK_EQ(cell.files, 0);
    CHECK_EQ(points(w), 1);
}

TEST(a_checkpoint_stays_while_it_is_read)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    _cleanup_(checkpoint_done) struct checkpoint c = { 0 };
    struct archive_busy *pin = NULL, *late = NULL;
    struct err err = ERR_INIT;
    make(w, WAKE_AUTO, &s);
    taken(w, s.id, "then", false);
    CHECK_OK(checkpoint_get(w->core, "default", s.id, "then", &c, &err));
    CHECK_OK(checkpoints_pin(w->core, &c, &pin, &err));
    CHECK_EQ(checkpoint_remove(w->core, "default", s.id, "then", &err), -EBUSY);
    CHECK_STR(failure_name(err.failure), "checkpoint_in_use");
    CHECK_EQ(points(w), 1);
    checkpoints_unpin(w->core, pin);
    CHECK_OK(checkpoint_remove(w->core, "default", s.id, "then", &err));
    CHECK_EQ(points(w), 0);
    CHECK_EQ(checkpoints_pin(w->core, &c, &late, &err), -ENOENT);
}

TEST(an_idle_one_is_paused_and_who_comes_meanwhile_waits)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    _cleanup_(sandbox_spec_done) struct sandbox_spec spec;
    struct sandbox s = { 0 }, t = { 0 };
    struct err err = ERR_INIT;
    sandbox_spec_init(&spec);
    spec.idle_timeout_ms = 60;
    spec.on_idle = END_PAUSE;
    if (sandbox_create(w->core, "default", &spec, &s, &err) < 0)
        fail_msg("create: %s", err.msg);
    for (int i = 0; i < 5; i++) {
        unsigned asked = fake_asked(&w->k, KEEPER_POINT_PUT);
        WAIT_FOR(state_of(w, s.id) != SANDBOX_RUNNING ||
                 fake_asked(&w->k, KEEPER_POINT_PUT) > asked);
        CHECK_OK(sandbox_enter(w->core, "default", s.id, &t, &err));
        CHECK_EQ(t.state, SANDBOX_RUNNING);
        CHECK_EQ(state_of(w, s.id), SANDBOX_RUNNING); /* and stays so while somebody is inside */
        sandbox_leave(w->core, s.id);
        sandbox_done(&t);
    }
    sandbox_done(&s);
}
