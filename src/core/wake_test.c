#include "core/fake_keeper.h"

static void make(struct world *w, enum sandbox_wake wake, struct sandbox *s)
{
    struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    spec.wake = wake;
    CHECK_OK(sandbox_create(w->core, OWNER_DEFAULT, &spec, s, NULL));
    sandbox_spec_done(&spec);
}

static int wake(struct world *w, const char *id, bool *woken, struct err *err)
{
    struct sandbox s = { 0 };
    int r = sandbox_wake(w->core, NULL, id, &s, woken, err);
    if (r >= 0)
        sandbox_leave(w->core, id);
    sandbox_done(&s);
    return r;
}

TEST(what_was_stopped_by_hand_wakes_only_if_it_says_so)
{
    static const enum sandbox_wake kinds[] = { WAKE_AUTO, WAKE_NEVER, WAKE_ALWAYS };
    struct world *w = world_new(0);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct sandbox s, after = { 0 };
        struct err err = ERR_INIT;
        bool woken = true;
        make(w, kinds[i], &s);
        CHECK_OK(wake(w, s.id, &woken, &err));
        CHECK(!woken); /* it runs */
        CHECK_OK(sandbox_stop(w->core, OWNER_DEFAULT, s.id, &after, NULL));
        int r = wake(w, s.id, &woken, &err);
        CHECK_EQ(r, kinds[i] == WAKE_ALWAYS ? 0 : -ESRCH);
        CHECK_EQ(woken, kinds[i] == WAKE_ALWAYS);
        if (r < 0)
            CHECK_STR(failure_name(err.failure), "sandbox_not_running");
        sandbox_done(&after);
        sandbox_done(&s);
    }
    world_free(w);
}

TEST(what_is_gone_does_not_wake)
{
    struct world *w = world_new(0);
    struct sandbox s;
    struct err err = ERR_INIT;
    bool woken;
    make(w, WAKE_ALWAYS, &s);
    CHECK_OK(sandbox_delete(w->core, OWNER_DEFAULT, s.id, NULL));
    CHECK_EQ(wake(w, s.id, &woken, &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "sandbox_gone");
    sandbox_done(&s);
    world_free(w);
}
