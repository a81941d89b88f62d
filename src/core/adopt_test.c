#include "core/adopt.h"

#include "core/fake_keeper.h"

/* What a life before left in the database and with the keeper. */
static void left(struct world *w, struct store *store, const char *id, const char *state,
                 int cell /* 1: runs, 0: stored, -1: none */, int64_t expires_ms)
{
    struct store_sandbox row = { .id = id,
                                 .owner = "default",
                                 .state = state,
                                 .cause = strcmp(state, "stopping") == 0 ? "stopped" : "none",
                                 .tree = WORLD_TREE,
                                 .spec = "{\"image\":\"base\"}",
                                 .created_ms = 1,
                                 .started_ms = 2,
                                 .expires_ms = expires_ms };
    if (state[0])
        CHECK_OK(store_sandbox_add(store, &row, NULL));
    if (cell < 0)
        return;
    struct fake_cell *c = &w->k.cells[w->k.n++];
    (void)snprintf(c->id, sizeof(c->id), "%s", id);
    c->running = cell;
}

static enum sandbox_state state_of(struct core *core, const char *id, enum sandbox_cause *ret_cause)
{
    struct sandbox s = { .state = SANDBOX_GONE };
    struct err err = ERR_INIT;
    if (sandbox_get(core, "default", id, &s, &err) < 0)
        CHECK_STR(failure_name(err.failure), "sandbox_gone");
    *ret_cause = s.cause;
    enum sandbox_state state = s.state;
    sandbox_done(&s);
    return state;
}

TEST(start_up_makes_the_database_and_the_keeper_agree)
{
    static const struct {
        const char *id, *state;
        int cell;
        enum sandbox_state then;
        enum sandbox_cause cause;
        int then_cell;
    } cases[] = {
        { "aaaaaaaaaaaaaaaaaaaa", "creating", 1, SANDBOX_GONE, CAUSE_FAILED, -1 },
        { "baaaaaaaaaaaaaaaaaaa", "creating", -1, SANDBOX_GONE, CAUSE_FAILED, -1 },
        { "caaaaaaaaaaaaaaaaaaa", "deleting", 1, SANDBOX_GONE, CAUSE_NONE, -1 },
        { "daaaaaaaaaaaaaaaaaaa", "stopping", 1, SANDBOX_STOPPED, CAUSE_STOPPED, 0 },
        { "eaaaaaaaaaaaaaaaaaaa", "running", 1, SANDBOX_RUNNING, CAUSE_NONE, 1 },
        { "faaaaaaaaaaaaaaaaaaa", "running", 0, SANDBOX_STOPPED, CAUSE_CRASHED, 0 },
        { "gaaaaaaaaaaaaaaaaaaa", "running", -1, SANDBOX_STOPPED, CAUSE_CRASHED, -1 },
        { "haaaaaaaaaaaaaaaaaaa", "stopped", 0, SANDBOX_STOPPED, CAUSE_NONE, 0 },
        { "iaaaaaaaaaaaaaaaaaaa", "stopped", 1, SANDBOX_STOPPED, CAUSE_NONE, 0 },
    };
    struct world *w = world_new(0);
    struct store *store;
    char dir[128];
    core_free(w->core);
    CHECK(snprintf(dir, sizeof(dir), "%s/state", w->dir) > 0);
    CHECK_OK(store_open(dir, &store, NULL));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        left(w, store, cases[i].id, cases[i].state, cases[i].cell, 0);
    left(w, store, "jaaaaaaaaaaaaaaaaaaa", "", 1, 0); /* a pool's cell */
    left(w, store, "kaaaaaaaaaaaaaaaaaaa", "", 0, 0); /* storage that nobody knows */
    store_close(store);
    memset(w->k.images[w->k.n_images++], 'b', KEEPER_IMAGE_SIZE - 1); /* an import that was cut */
    memcpy(w->k.images[w->k.n_images++], WORLD_TREE, KEEPER_IMAGE_SIZE);

    world_start(w, 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        enum sandbox_cause cause;
        CHECK_EQ(state_of(w->core, cases[i].id, &cause), cases[i].then);
        CHECK_EQ(cause, cases[i].cause);
        CHECK_EQ(fake_has(&w->k, cases[i].id, NULL), cases[i].then_cell);
    }
    CHECK_EQ(fake_has(&w->k, "jaaaaaaaaaaaaaaaaaaa", NULL), -1);
    CHECK_EQ(fake_has(&w->k, "kaaaaaaaaaaaaaaaaaaa", NULL), -1);
    CHECK_EQ(w->k.n_images, 1);
    CHECK_STR(w->k.images[0], WORLD_TREE);

    world_restart(w, 0); /* what was settled stays so */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        enum sandbox_cause cause;
        CHECK_EQ(state_of(w->core, cases[i].id, &cause), cases[i].then);
    }
    world_free(w);
}

static void note(const struct world *w, const char *file, const char *text)
{
    char path[192];
    CHECK(snprintf(path, sizeof(path), "%s/%s", w->dir, file) > 0);
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    CHECK(fputs(text, f) >= 0);
    CHECK_EQ(fclose(f), 0);
}

/* A sandbox ran and is gone, after `file` said `text`: check its cause, also after a second
 * start of the daemon, when the file says nothing new. */
static void check_cause(const char *file, const char *text, enum sandbox_cause expected)
{
    static const char id[] = "aaaaaaaaaaaaaaaaaaaa";
    struct world *w = world_new(0);
    struct store *store;
    enum sandbox_cause cause;
    char dir[128];
    core_free(w->core);
    CHECK(snprintf(dir, sizeof(dir), "%s/state", w->dir) > 0);
    CHECK_OK(store_open(dir, &store, NULL));
    left(w, store, id, "running", 0, 0);
    store_close(store);
    note(w, file, text);
    world_start(w, 0);
    CHECK_EQ(state_of(w->core, id, &cause), SANDBOX_STOPPED);
    CHECK_EQ(cause, expected);
    world_restart(w, 0);
    CHECK_EQ(state_of(w->core, id, &cause), SANDBOX_STOPPED);
    CHECK_EQ(cause, expected);
    world_free(w);
}

TEST(what_ended_with_the_host_or_all_others_did_not_crash)
{
    check_cause("state/host-boot", "another\n", CAUSE_REBOOT);
    check_cause("ended", "3\n", CAUSE_SHUTDOWN);
    check_cause("ended", "1\n", CAUSE_CRASHED); /* the sandbox was started after that */
    check_cause("ended", "", CAUSE_CRASHED);
    check_cause("state/host-boot", "", CAUSE_CRASHED);
}

TEST(what_expired_while_the_daemon_was_away_ends_at_once)
{
    struct world *w = world_new(0);
    struct store *store;
    char dir[128];
    core_free(w->core);
    CHECK(snprintf(dir, sizeof(dir), "%s/state", w->dir) > 0);
    CHECK_OK(store_open(dir, &store, NULL));
    left(w, store, "aaaaaaaaaaaaaaaaaaaa", "running", 1, clock_now_ms() - 1000);
    left(w, store, "baaaaaaaaaaaaaaaaaaa", "running", 1, clock_now_ms() + 3600 * 1000);
    store_close(store);
    world_start(w, 0);
    enum sandbox_cause cause;
    WAIT_FOR(fake_has(&w->k, "aaaaaaaaaaaaaaaaaaaa", NULL) == -1);
    WAIT_FOR(state_of(w->core, "aaaaaaaaaaaaaaaaaaaa", &cause) == SANDBOX_GONE);
    CHECK_EQ(cause, CAUSE_TIMEOUT);
    CHECK_EQ(state_of(w->core, "baaaaaaaaaaaaaaaaaaa", &cause), SANDBOX_RUNNING);
    world_free(w);
}

TEST(a_keeper_that_comes_back_is_waited_for_and_its_dead_are_found)
{
    struct world *w = world_new(0);
    struct sandbox s, t;
    struct sandbox_spec spec;
    struct err err = ERR_INIT;
    enum sandbox_cause cause;
    sandbox_spec_init(&spec);
    CHECK_OK(sandbox_create(w->core, "default", &spec, &s, &err));
    WAIT_FOR(fake_asked(&w->k, KEEPER_WATCH) == 1);
    fake_down(&w->k);
    fake_find(&w->k, s.id)->running = false; /* died while the keeper was away */
    (void)usleep(50000);
    fake_up(&w->k);
    CHECK_OK(sandbox_create(w->core, "default", &spec, &t, &err));
    WAIT_FOR(state_of(w->core, s.id, &cause) == SANDBOX_STOPPED);
    CHECK_EQ(cause, CAUSE_CRASHED);
    CHECK_EQ(state_of(w->core, t.id, &cause), SANDBOX_RUNNING);
    sandbox_done(&s);
    sandbox_done(&t);
    world_free(w);
}

TEST(an_absent_keeper_is_said_to_be_absent)
{
    struct world *w = world_new(0);
    struct sandbox s;
    struct sandbox_spec spec;
    struct err err = ERR_INIT;
    enum sandbox_cause cause;
    sandbox_spec_init(&spec);
    spec.name = strdup("box");
    CHECK_OK(sandbox_create(w->core, "default", &spec, &s, &err));
    fake_down(&w->k);
    int64_t began = clock_mono_ms();
    CHECK_EQ(sandbox_delete(w->core, "default", "box", &err), -ENOTCONN);
    CHECK_STR(failure_name(err.failure), "keeper_unavailable");
    CHECK(clock_mono_ms() - began >= 4900);
    fake_up(&w->k);
    WAIT_FOR(state_of(w->core, s.id, &cause) == SANDBOX_GONE); /* it is not forgotten */
    CHECK_EQ(cause, CAUSE_DELETED);
    sandbox_done(&s);
    sandbox_spec_done(&spec);
    world_free(w);
}
