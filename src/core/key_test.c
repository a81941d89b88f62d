#include "core/key.h"

#include "core/fake_keeper.h"

TEST(a_key_works_under_any_prefix_until_it_is_revoked)
{
    struct world *w = world_new(0);
    struct err err = ERR_INIT;
    struct key key;
    char text[KEY_TEXT_MAX], other[KEY_TEXT_MAX], owner[OWNER_MAX];
    CHECK_OK(key_create(w->core, "default", "laptop", &key, text, &err));
    CHECK_EQ(strlen(text), 7 + 40);
    CHECK_OK(key_check(w->core, text, owner));
    CHECK_STR(owner, "default");
    CHECK(snprintf(other, sizeof(other), "e2b_%s", text + 7) > 0);
    CHECK_OK(key_check(w->core, other, owner));
    CHECK_OK(key_check(w->core, text + 7, owner));
    other[10] = other[10] == 'a' ? 'b' : 'a';
    CHECK_EQ(key_check(w->core, other, owner), -EACCES);
    CHECK_EQ(key_check(w->core, "", owner), -EACCES);
    CHECK_EQ(key_check(w->core, "_", owner), -EACCES);

    world_restart(w, 0);
    CHECK_OK(key_check(w->core, text, owner));
    CHECK_EQ(key_revoke(w->core, "another", key.id, &err), -ENOENT);
    CHECK_STR(err.what, "key_not_found");
    CHECK_OK(key_revoke(w->core, "default", key.id, &err));
    CHECK_EQ(key_check(w->core, text, owner), -EACCES);
    world_restart(w, 0);
    CHECK_EQ(key_check(w->core, text, owner), -EACCES);
    CHECK_OK(key_check(w->core, WORLD_KEY, owner)); /* the first one, still */

    struct key *keys;
    size_t n;
    CHECK_OK(key_list(w->core, "default", &keys, &n, &err));
    CHECK_EQ(n, 1);
    CHECK_STR(keys[0].name, "first");
    CHECK(keys[0].last_used_ms > 0);
    free(keys);
    CHECK_EQ(key_create(w->core, "default", "a b", &key, text, &err), -EINVAL);
    world_free(w);
}

TEST(a_first_key_that_ends_in_a_short_word_counts_whole)
{
    struct world *w = world_new(0);
    char owner[OWNER_MAX];
    struct err err = ERR_INIT;
    core_free(w->core);
    struct core_config config = { .data_dir = w->dir,
                                  .run_dir = w->dir,
                                  .first_key = "my_very_own_secret_key_1" };
    CHECK_OK(core_new(&config, &w->core, &err));
    CHECK_OK(key_check(w->core, "my_very_own_secret_key_1", owner));
    CHECK_EQ(key_check(w->core, "1", owner), -EACCES);
    CHECK_EQ(key_check(w->core, "another_1", owner), -EACCES);
    core_free(w->core);
    w->core = NULL;
    config.first_key = "too short";
    CHECK_EQ(core_new(&config, &w->core, &err), -EINVAL);
    CHECK(strstr(err.msg, "WARREN_API_KEY") != NULL);
    world_free(w);
}
