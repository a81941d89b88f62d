#include "core/alias.h"

#include "core/fake_keeper.h"
#include "core/team.h"

static void make(struct world *w, const char *owner, struct sandbox *s)
{
    struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    CHECK_OK(sandbox_create(w->core, owner, &spec, s, NULL));
    sandbox_spec_done(&spec);
}

TEST(a_name_is_one_owners_and_found_in_any_spelling)
{
    struct world *w = world_new(0);
    struct sandbox s;
    struct alias a;
    struct err err = ERR_INIT;
    make(w, OWNER_DEFAULT, &s);
    CHECK_OK(
        alias_put(w->core, OWNER_DEFAULT, "localhost", "App.Example.test.", s.id, 80, &a, &err));
    CHECK_STR(a.name, "app.example.test");
    CHECK(alias_find(w->core, "APP.example.test:7070", 21, &a) && a.port == 80);
    CHECK(!alias_find(w->core, "xapp.example.test", 17, &a));
    CHECK(!alias_find(w->core, "", 0, &a));
    CHECK_EQ(alias_get(w->core, "other", "app.example.test", &a, &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "name_not_found");
    CHECK_EQ(alias_put(w->core, "other", "localhost", "app.example.test", s.id, 80, &a, &err),
             -ENOENT); /* not its sandbox */
    (void)world_restart(w, 0);
    CHECK(alias_find(w->core, "app.example.test", 16, &a));
    CHECK_STR(a.sandbox, s.id);
    CHECK_OK(
        alias_put(w->core, OWNER_DEFAULT, "localhost", "app.example.test", s.id, 81, &a, &err));
    CHECK(alias_find(w->core, "app.example.test", 16, &a) && a.port == 81);
    CHECK_OK(alias_remove(w->core, OWNER_DEFAULT, "app.example.test", &err));
    CHECK(!alias_find(w->core, "app.example.test", 16, &a));
    (void)world_restart(w, 0);
    CHECK(!alias_find(w->core, "app.example.test", 16, &a));
    sandbox_done(&s);
    world_free(w);
}

TEST(a_name_of_another_team_cannot_be_had_until_that_team_is_gone)
{
    struct world *w = world_new(0);
    struct sandbox mine, theirs;
    struct alias a;
    struct err err = ERR_INIT;
    const int64_t unlimited[QUOTA_COUNT] = { -1, -1, -1, -1 };
    struct team team;
    CHECK_OK(team_create(w->core, "them", unlimited, &team, &err));
    make(w, OWNER_DEFAULT, &mine);
    make(w, "them", &theirs);
    CHECK_OK(alias_put(w->core, "them", "localhost", "a.example.test", theirs.id, 80, &a, &err));
    CHECK_EQ(
        alias_put(w->core, OWNER_DEFAULT, "localhost", "a.example.test", mine.id, 80, &a, &err),
        -EEXIST);
    CHECK_STR(failure_name(err.failure), "name_taken");
    CHECK_OK(sandbox_delete(w->core, "them", theirs.id, NULL));
    CHECK(alias_find(w->core, "a.example.test", 14, &a)); /* it outlives its sandbox */
    CHECK_OK(team_remove(w->core, "them", &err));
    CHECK_OK(
        alias_put(w->core, OWNER_DEFAULT, "localhost", "a.example.test", mine.id, 80, &a, &err));
    sandbox_done(&mine);
    sandbox_done(&theirs);
    world_free(w);
}

TEST(names_that_are_not_to_be_had_are_refused)
{
    static const char *const bad[] = {
        "",         "a",       "localhost", "x.localhost", "p.test",
        "x.P.test", "1.2.3.4", "a..b",      "*.a.test",    "-a.test"
    };
    struct world *w = world_new(0);
    struct sandbox s;
    struct alias a;
    struct err err = ERR_INIT;
    make(w, OWNER_DEFAULT, &s);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_EQ(alias_put(w->core, OWNER_DEFAULT, "p.test", bad[i], s.id, 80, &a, &err), -EINVAL);
    CHECK_OK(alias_put(w->core, OWNER_DEFAULT, "p.test", "xp.test", s.id, 80, &a, &err));
    sandbox_done(&s);
    world_free(w);
}
