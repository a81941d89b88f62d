#include "core/team.h"

#include "core/fake_keeper.h"
#include "core/key.h"
#include "core/spec.h"

static const int64_t unlimited[QUOTA_COUNT] = { -1, -1, -1, -1 };

static int make(struct core *core, const char *team, const char *name, struct err *err)
{
    struct sandbox_spec spec;
    struct sandbox s;
    sandbox_spec_init(&spec);
    spec.name = name ? strdup(name) : NULL;
    int r = sandbox_create(core, team, &spec, &s, err);
    sandbox_spec_done(&spec);
    if (r >= 0)
        sandbox_done(&s);
    return r;
}

TEST(a_team_is_kept_and_removed_with_its_keys)
{
    struct world *w = world_new(0);
    struct err err = ERR_INIT;
    struct team team;
    struct key key;
    char text[KEY_TEXT_MAX];
    CHECK_OK(team_create(w->core, "red", unlimited, &team, &err));
    CHECK_EQ(team_create(w->core, "red", unlimited, &team, &err), -EEXIST);
    CHECK_EQ(team_create(w->core, "a b", unlimited, &team, &err), -EINVAL);
    CHECK_EQ(key_create(w->core, "blue", "k", KEY_MEMBER, &key, text, &err), -ENOENT);
    CHECK_OK(key_create(w->core, "red", "k", KEY_MEMBER, &key, text, &err));
    CHECK_OK(make(w->core, "red", "box", &err));
    CHECK_EQ(team_remove(w->core, "red", &err), -EBUSY);
    CHECK_STR(failure_name(err.failure), "team_not_empty");

    world_restart(w, 0);
    CHECK_OK(key_check(w->core, text, &key));
    CHECK_STR(key.owner, "red");
    CHECK_OK(team_get(w->core, "red", &team, &err));
    CHECK_EQ(team.in_use[QUOTA_SANDBOXES], 1);
    CHECK_OK(sandbox_delete(w->core, "red", "box", &err));
    CHECK_OK(team_remove(w->core, "red", &err));
    CHECK_EQ(key_check(w->core, text, &key), -EACCES);
    CHECK_EQ(make(w->core, "red", NULL, &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "team_not_found");
    CHECK_EQ(team_remove(w->core, "default", &err), -EPERM);
    world_restart(w, 0);
    CHECK_EQ(key_check(w->core, text, &key), -EACCES);
    CHECK(!team_exists(w->core, "red"));
    world_free(w);
}

TEST(quotas_count_what_runs_and_what_is_kept)
{
    struct world *w = world_new(0);
    struct err err = ERR_INIT;
    struct team team;
    struct sandbox s;
    struct sandbox_spec spec = { .memory_bytes = 1024ull << 20 };
    const int64_t quotas[QUOTA_COUNT] = { 3, 2500, 1024, -1 };
    CHECK_OK(team_create(w->core, "red", quotas, &team, &err));
    CHECK_OK(make(w->core, "red", "a", &err));
    CHECK_OK(make(w->core, "red", "b", &err));
    CHECK_EQ(make(w->core, "red", "c", &err), -EDQUOT); /* both cpus and memory are used up */
    CHECK_STR(failure_name(err.failure), "quota_exceeded");
    CHECK_OK(sandbox_stop(w->core, "red", "a", &s, &err));
    sandbox_done(&s);
    CHECK_OK(make(w->core, "red", "c", &err));
    CHECK_EQ(sandbox_start(w->core, "red", "a", &s, &err), -EDQUOT);
    CHECK_STR(failure_name(err.failure), "quota_exceeded");
    CHECK_EQ(sandbox_update(w->core, "red", "b", &spec, CHANGE_LIMITS, &s, &err), -EDQUOT);
    CHECK_OK(sandbox_stop(w->core, "red", "c", &s, &err));
    sandbox_done(&s);
    CHECK_OK(sandbox_update(w->core, "red", "b", &spec, CHANGE_LIMITS, &s, &err));
    sandbox_done(&s);
    CHECK_EQ(make(w->core, "red", "d", &err), -EDQUOT); /* three there are */
    CHECK_OK(team_get(w->core, "red", &team, &err));
    CHECK_EQ(team.in_use[QUOTA_SANDBOXES], 3);
    CHECK_EQ(team.in_use[QUOTA_CPU_MILLIS], 1000);
    CHECK_EQ(team.in_use[QUOTA_MEMORY_MB], 1024);
    CHECK_EQ(team.in_use[QUOTA_DISK_MB], 3 * 10240);

    /* A quota below what is in use refuses more, and lets less be. */
    const int64_t less[QUOTA_COUNT] = { 1, 100, 10, 10 };
    CHECK_OK(team_update(w->core, "red", 0xf, less, &team, &err));
    spec.memory_bytes = 256ull << 20;
    CHECK_OK(sandbox_update(w->core, "red", "b", &spec, CHANGE_LIMITS, &s, &err));
    sandbox_done(&s);
    world_free(w);
}

#define MAKERS 8
struct maker {
    struct core *core;
    int made;
};

static void *make_many(void *ctx)
{
    struct maker *m = ctx;
    for (int i = 0; i < 20; i++)
        m->made += make(m->core, "red", NULL, NULL) >= 0;
    return NULL;
}

TEST(creates_at_once_do_not_pass_a_quota_together)
{
    struct world *w = world_new(2);
    struct err err = ERR_INIT;
    struct team team;
    const int64_t quotas[QUOTA_COUNT] = { 17, -1, -1, -1 };
    struct maker makers[MAKERS];
    pthread_t threads[MAKERS];
    int made = 0;
    CHECK_OK(team_create(w->core, "red", quotas, &team, &err));
    for (int i = 0; i < MAKERS; i++) {
        makers[i] = (struct maker){ w->core, 0 };
        assert_int_equal(pthread_create(&threads[i], NULL, make_many, &makers[i]), 0);
    }
    for (int i = 0; i < MAKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        made += makers[i].made;
    }
    CHECK_EQ(made, 17);
    world_free(w);
}
