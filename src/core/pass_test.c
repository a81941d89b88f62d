#include "core/pass.h"

#include "base/clock.h"
#include "core/fake_keeper.h"

#define HOUR_MS (3600 * 1000ll)

static void make(struct world *w, struct sandbox *s)
{
    struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    CHECK_OK(sandbox_create(w->core, OWNER_DEFAULT, &spec, s, NULL));
    sandbox_spec_done(&spec);
}

TEST(a_pass_opens_its_port_until_it_is_revoked)
{
    struct world *w = world_new(0);
    struct sandbox s;
    struct pass pass, found = { .data = NULL };
    struct err err = ERR_INIT;
    char text[PASS_TEXT_SIZE];
    make(w, &s);
    CHECK_OK(
        pass_create(w->core, OWNER_DEFAULT, s.id, 80, HOUR_MS, "{\"a\":1}", &pass, text, &err));
    CHECK_EQ(strlen(text), PASS_TEXT_SIZE - 1);
    CHECK_OK(pass_check(w->core, s.id, 80, text, &found));
    CHECK_STR(found.data, "{\"a\":1}");
    pass_done(&found);
    CHECK_EQ(pass_check(w->core, s.id, 81, text, &found), -EACCES);
    CHECK_EQ(pass_check(w->core, "aaaaaaaaaaaaaaaaaaaa", 80, text, &found), -EACCES);
    CHECK_EQ(pass_check(w->core, s.id, 80, "", &found), -EACCES);
    CHECK_EQ(
        pass_check(w->core, s.id, 80, "preview_0123456789012345678901234567890123456789", &found),
        -EACCES);
    (void)world_restart(w, 0);
    CHECK_OK(pass_check(w->core, s.id, 80, text, &found));
    pass_done(&found);
    CHECK_EQ(pass_revoke(w->core, "another", s.id, pass.id, &err), -ENOENT);
    CHECK_OK(pass_revoke(w->core, OWNER_DEFAULT, s.id, pass.id, &err));
    CHECK_EQ(pass_revoke(w->core, OWNER_DEFAULT, s.id, pass.id, &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "token_not_found");
    CHECK_EQ(pass_check(w->core, s.id, 80, text, &found), -EACCES);
    (void)world_restart(w, 0);
    CHECK_EQ(pass_check(w->core, s.id, 80, text, &found), -EACCES);
    pass_done(&pass);
    sandbox_done(&s);
    world_free(w);
}

TEST(a_pass_ends_with_its_time_and_with_its_sandbox)
{
    struct world *w = world_new(0);
    struct sandbox s;
    struct pass pass, found = { .data = NULL }, *list;
    char over[PASS_TEXT_SIZE], good[PASS_TEXT_SIZE];
    size_t n;
    make(w, &s);
    CHECK_OK(pass_create(w->core, OWNER_DEFAULT, s.id, 0, -1, NULL, &pass, over, NULL));
    pass_done(&pass);
    CHECK_OK(pass_create(w->core, OWNER_DEFAULT, s.id, 0, HOUR_MS, NULL, &pass, good, NULL));
    CHECK_EQ(pass_check(w->core, s.id, 80, over, &found), -EACCES);
    CHECK_OK(pass_check(w->core, s.id, 80, good, &found));
    CHECK_OK(pass_list(w->core, OWNER_DEFAULT, s.id, &list, &n, NULL));
    CHECK_EQ(n, 1);
    CHECK_STR(list[0].id, pass.id);
    pass_list_free(list, n);
    CHECK_OK(sandbox_delete(w->core, OWNER_DEFAULT, s.id, NULL));
    CHECK_EQ(pass_check(w->core, s.id, 80, good, &found), -EACCES);
    CHECK_EQ(pass_create(w->core, OWNER_DEFAULT, s.id, 0, HOUR_MS, NULL, &pass, good, NULL),
             -ENOENT);
    sandbox_done(&s);
    world_free(w);
}
