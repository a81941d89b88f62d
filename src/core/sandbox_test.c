#include "core/sandbox.h"

#include "core/event.h"
#include "core/fake_keeper.h"

static struct sandbox_spec spec_named(const char *name)
{
    struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    spec.name = name ? strdup(name) : NULL;
    return spec;
}

static void make(struct core *core, const char *name, struct sandbox *ret_s)
{
    _cleanup_(sandbox_spec_done) struct sandbox_spec spec = spec_named(name);
    struct err err = ERR_INIT;
    if (sandbox_create(core, "default", &spec, ret_s, &err) < 0)
        fail_msg("create: %s", err.msg);
}

TEST(a_created_sandbox_runs_and_is_found_by_id_and_by_name)
{
    struct world *w = world_new(0);
    struct sandbox s, by_id, by_name, other;
    struct err err = ERR_INIT;
    make(w->core, "box", &s);
    CHECK_EQ(s.state, SANDBOX_RUNNING);
    CHECK_STR(s.spec.image, "base");
    CHECK_STR(s.spec.user, "root");
    CHECK_EQ(fake_has(&w->k, s.id, NULL), 1);
    CHECK_OK(sandbox_get(w->core, "default", s.id, &by_id, &err));
    CHECK_OK(sandbox_get(w->core, "default", "box", &by_name, &err));
    CHECK_STR(by_id.id, by_name.id);
    CHECK_EQ(sandbox_get(w->core, "another", s.id, &other, &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "sandbox_not_found");
    CHECK_EQ(sandbox_get(w->core, "another", "box", &other, &err), -ENOENT);
    sandbox_done(&s);
    sandbox_done(&by_id);
    sandbox_done(&by_name);
    world_free(w);
}

TEST(bad_requests_are_refused_by_name_and_leave_nothing)
{
    struct world *w = world_new(0);
    struct sandbox s, t;
    struct err err = ERR_INIT;
    make(w->core, "box", &s);

    _cleanup_(sandbox_spec_done) struct sandbox_spec spec = spec_named("box");
    CHECK_EQ(sandbox_create(w->core, "default", &spec, &t, &err), -EEXIST);
    CHECK_STR(failure_name(err.failure), "name_taken");
    spec.name[0] = 'f';
    spec.image = strdup("nothing");
    CHECK_EQ(sandbox_create(w->core, "default", &spec, &t, &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "image_not_found");
    spec.image[0] = '-';
    CHECK_EQ(sandbox_create(w->core, "default", &spec, &t, &err), -EINVAL);
    CHECK_STR(failure_name(err.failure), "invalid_field");
    CHECK_EQ(fake_count(&w->k), 1);
    sandbox_done(&s);
    world_free(w);
}

TEST(a_failed_creation_passes_the_reason_on_and_leaves_only_a_record)
{
    struct world *w = world_new(0);
    struct sandbox s, gone;
    struct err err = ERR_INIT;
    _cleanup_(sandbox_spec_done) struct sandbox_spec spec = spec_named("box");
    fake_fail_next(&w->k, KEEPER_MAKE, ENOSPC, "no_space");
    CHECK_EQ(sandbox_create(w->core, "default", &spec, &s, &err), -ENOSPC);
    CHECK_STR(failure_name(err.failure), "no_space");
    CHECK_EQ(fake_count(&w->k), 0);
    CHECK_EQ(sandbox_get(w->core, "default", "box", &gone, &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "sandbox_gone");
    CHECK_EQ(gone.cause, CAUSE_FAILED);
    sandbox_done(&gone);

    fake_fail_next(&w->k, KEEPER_MAKE, EIO, "a name from nowhere");
    CHECK_EQ(sandbox_create(w->core, "default", &spec, &s, &err), -EIO);
    CHECK_STR(failure_name(err.failure), "internal");
    make(w->core, "box", &s); /* the name is free again */
    sandbox_done(&s);
    world_free(w);
}

TEST(a_cell_made_by_a_keeper_that_died_before_its_answer_counts_as_made)
{
    struct world *w = world_new(0);
    struct sandbox s;
    fake_drop_next(&w->k, KEEPER_MAKE);
    make(w->core, NULL, &s);
    CHECK_EQ(fake_has(&w->k, s.id, NULL), 1);
    CHECK_EQ(fake_asked(&w->k, KEEPER_MAKE), 2);
    sandbox_done(&s);
    world_free(w);
}

TEST(stop_keeps_the_files_and_start_runs_on_them)
{
    struct world *w = world_new(0);
    struct sandbox s, t;
    struct err err = ERR_INIT;
    make(w->core, "box", &s);
    CHECK_OK(sandbox_stop(w->core, "default", "box", &t, &err));
    CHECK_EQ(t.state, SANDBOX_STOPPED);
    CHECK_EQ(t.cause, CAUSE_STOPPED);
    CHECK(t.stopped_ms > 0);
    CHECK_EQ(fake_has(&w->k, s.id, NULL), 0);
    sandbox_done(&t);
    CHECK_OK(sandbox_stop(w->core, "default", "box", &t, &err)); /* once more is fine */
    sandbox_done(&t);
    CHECK_EQ(sandbox_enter(w->core, "default", "box", &t, &err), -ESRCH);
    CHECK_STR(failure_name(err.failure), "sandbox_not_running");

    fake_fail_next(&w->k, KEEPER_MAKE, ENOSPC, "no_space");
    CHECK_EQ(sandbox_start(w->core, "default", "box", &t, &err), -ENOSPC);
    CHECK_OK(sandbox_get(w->core, "default", "box", &t, &err));
    CHECK_EQ(t.state, SANDBOX_STOPPED); /* a failed start loses nothing */
    sandbox_done(&t);
    CHECK_OK(sandbox_start(w->core, "default", "box", &t, &err));
    CHECK_EQ(t.state, SANDBOX_RUNNING);
    CHECK_EQ(t.cause, CAUSE_NONE);
    CHECK_EQ(fake_has(&w->k, s.id, NULL), 1);
    sandbox_done(&t);
    sandbox_done(&s);
    world_free(w);
}

TEST(a_deleted_sandbox_is_gone_and_says_how)
{
    struct world *w = world_new(0);
    struct sandbox s, gone;
    struct err err = ERR_INIT;
    make(w->core, "box", &s);
    CHECK_OK(sandbox_delete(w->core, "default", "box", &err));
    CHECK_EQ(fake_count(&w->k), 0);
    CHECK_EQ(sandbox_get(w->core, "default", s.id, &gone, &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "sandbox_gone");
    CHECK_EQ(gone.state, SANDBOX_GONE);
    CHECK_EQ(gone.cause, CAUSE_DELETED);
    CHECK(gone.ended_ms > 0);
    sandbox_done(&gone);
    CHECK_EQ(sandbox_delete(w->core, "default", "box", &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "sandbox_gone");
    sandbox_done(&s);
    make(w->core, "box", &s); /* the name is free for a new one, and that one is found */
    CHECK_OK(sandbox_get(w->core, "default", "box", &gone, &err));
    CHECK_STR(gone.id, s.id);
    sandbox_done(&gone);
    sandbox_done(&s);
    world_free(w);
}

TEST(a_delete_that_the_keeper_failed_is_finished_later)
{
    struct world *w = world_new(0);
    struct sandbox s, t;
    struct err err = ERR_INIT;
    make(w->core, NULL, &s);
    fake_fail_next(&w->k, KEEPER_DELETE, EIO, "internal");
    CHECK_EQ(sandbox_delete(w->core, "default", s.id, &err), -EIO);
    CHECK_OK(sandbox_get(w->core, "default", s.id, &t, &err));
    CHECK_EQ(t.state, SANDBOX_DELETING);
    sandbox_done(&t);
    CHECK_EQ(sandbox_start(w->core, "default", s.id, &t, &err), -EBUSY);
    CHECK_STR(failure_name(err.failure), "sandbox_busy");
    WAIT_FOR(fake_count(&w->k) == 0);
    sandbox_done(&s);
    world_free(w);
}

TEST(an_update_changes_what_it_names_and_nothing_else)
{
    struct world *w = world_new(0);
    struct sandbox s, t;
    struct err err = ERR_INIT;
    struct fake_cell cell;
    make(w->core, "one", &s);
    sandbox_done(&s);
    make(w->core, "two", &s);

    _cleanup_(sandbox_spec_done) struct sandbox_spec spec = spec_named("one");
    CHECK_EQ(sandbox_update(w->core, "default", "two", &spec, CHANGE_NAME, &t, &err), -EEXIST);
    CHECK_STR(failure_name(err.failure), "name_taken");
    memcpy(spec.name, "new", 4);
    CHECK_OK(pairs_add(&spec.metadata, "k", "v"));
    spec.memory_bytes = 64 << 20;
    spec.cpu_millis = spec.pids = 0;
    spec.disk_bytes = 0;
    spec.timeout_ms = 3600 * 1000;
    CHECK_OK(sandbox_update(w->core, "default", "two", &spec,
                            CHANGE_NAME | CHANGE_METADATA | CHANGE_LIMITS | CHANGE_TIMEOUT, &t,
                            &err));
    CHECK_STR(t.spec.name, "new");
    CHECK_STR(pairs_get(&t.spec.metadata, "k"), "v");
    CHECK_EQ(t.spec.memory_bytes, 64 << 20);
    CHECK_EQ(t.spec.pids, 512);
    CHECK(t.expires_ms > clock_now_ms() + 3500 * 1000);
    CHECK_EQ(fake_has(&w->k, s.id, &cell), 1);
    CHECK_EQ(cell.limits.memory_bytes, 64 << 20);
    sandbox_done(&t);

    spec.memory_bytes = 1;
    CHECK_EQ(sandbox_update(w->core, "default", "new", &spec, CHANGE_LIMITS, &t, &err), -EINVAL);
    spec.memory_bytes = 128 << 20;
    fake_fail_next(&w->k, KEEPER_LIMITS, EIO, "internal");
    memcpy(spec.name, "odd", 4);
    CHECK_EQ(
        sandbox_update(w->core, "default", "new", &spec, CHANGE_LIMITS | CHANGE_NAME, &t, &err),
        -EIO);
    CHECK_OK(sandbox_get(w->core, "default", "new", &t, &err)); /* as it was */
    CHECK_EQ(t.spec.memory_bytes, 64 << 20);
    sandbox_done(&t);

    world_restart(w, 0);
    CHECK_OK(sandbox_get(w->core, "default", "new", &t, &err));
    CHECK_EQ(t.spec.memory_bytes, 64 << 20);
    CHECK_STR(pairs_get(&t.spec.metadata, "k"), "v");
    CHECK(t.expires_ms > 0);
    sandbox_done(&t);
    sandbox_done(&s);
    world_free(w);
}

TEST(every_change_is_in_the_feed_with_its_cause)
{
    static const char *const types[] = { "image.added",     "sandbox.created", "sandbox.stopped",
                                         "sandbox.started", "sandbox.oom",     "sandbox.deleted" };
    struct world *w = world_new(0);
    struct sandbox s, t;
    struct event_list list;
    make(w->core, NULL, &s);
    CHECK_OK(sandbox_stop(w->core, "default", s.id, &t, NULL));
    sandbox_done(&t);
    CHECK_OK(sandbox_start(w->core, "default", s.id, &t, NULL));
    sandbox_done(&t);
    sandbox_note_oom(w->core, s.id);
    CHECK_OK(sandbox_delete(w->core, "default", s.id, NULL));
    CHECK_OK(event_read(w->core, "default", NULL, 0, 100, 0, &list, NULL));
    CHECK_EQ(list.n, ARRAY_LEN(types));
    for (size_t i = 0; i < list.n; i++)
        CHECK_STR(list.items[i].type, types[i]);
    CHECK_STR(list.items[2].data, "{\"cause\":\"stopped\"}");
    CHECK_STR(list.items[5].data, "{\"cause\":\"deleted\"}");
    event_list_done(&list);
    struct core_counts c;
    core_counts(w->core, &c);
    CHECK_EQ(c.creates, 1);
    CHECK_EQ(c.deletes, 1);
    CHECK_EQ(c.ooms, 1);
    CHECK_EQ(c.running, 0);
    sandbox_done(&s);
    world_free(w);
}

static void *delete_it(void *ctx)
{
    struct core *core = ctx;
    for (int i = 0; i < 50; i++) {
        struct err err = ERR_INIT;
        int r = sandbox_delete(core, "default", "shared", &err);
        assert_true(r >= 0 || r == -ENOENT);
    }
    return NULL;
}

static void *churn(void *ctx)
{
    struct core *core = ctx;
    for (int i = 0; i < 50; i++) {
        struct sandbox s;
        struct err err = ERR_INIT;
        _cleanup_(sandbox_spec_done) struct sandbox_spec spec = spec_named("shared");
        if (sandbox_create(core, "default", &spec, &s, &err) >= 0)
            sandbox_done(&s);
        if (sandbox_enter(core, "default", "shared", &s, &err) >= 0) {
            sandbox_leave(core, s.id);
            sandbox_done(&s);
        }
        if (sandbox_stop(core, "default", "shared", &s, &err) >= 0)
            sandbox_done(&s);
        if (sandbox_start(core, "default", "shared", &s, &err) >= 0)
            sandbox_done(&s);
        struct sandbox_filter all = { .limit = 10 };
        struct sandbox_list list;
        CHECK_OK(sandbox_list(core, "default", &all, &list, &err));
        sandbox_list_done(&list);
    }
    return NULL;
}

TEST(operations_on_one_sandbox_from_many_threads_end_with_nothing_left)
{
    struct world *w = world_new(2);
    pthread_t threads[6];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, i % 3 ? churn : delete_it, w->core), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        (void)pthread_join(threads[i], NULL);
    struct err err = ERR_INIT;
    (void)sandbox_delete(w->core, "default", "shared", &err);
    struct core_counts c;
    core_counts(w->core, &c);
    CHECK_EQ(c.running + c.stopped, 0);
    core_free(w->core);
    w->core = NULL;
    CHECK_EQ(fake_count(&w->k), 0); /* the pool's too */
    world_free(w);
}
