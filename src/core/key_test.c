#include "core/key.h"

#include "core/fake_keeper.h"

TEST(a_key_works_under_any_prefix_until_it_is_revoked)
{
    struct world *w = world_new(0);
    struct err err = ERR_INIT;
    struct key key;
    char text[KEY_TEXT_MAX], other[KEY_TEXT_MAX];
    struct key used;
    CHECK_OK(key_create(w->core, "default", "laptop", KEY_MEMBER, &key, text, &err));
    CHECK_EQ(strlen(text), 7 + 40);
    CHECK_OK(key_check(w->core, text, &used));
    CHECK_STR(used.owner, "default");
    CHECK_EQ(used.role, KEY_MEMBER);
    CHECK(snprintf(other, sizeof(other), "e2b_%s", text + 7) > 0);
    CHECK_OK(key_check(w->core, other, &used));
    CHECK_OK(key_check(w->core, text + 7, &used));
    other[10] = other[10] == 'a' ? 'b' : 'a';
    CHECK_EQ(key_check(w->core, other, &used), -EACCES);
    CHECK_EQ(key_check(w->core, "", &used), -EACCES);
    CHECK_EQ(key_check(w->core, "_", &used), -EACCES);

    world_restart(w, 0);
    CHECK_OK(key_check(w->core, text, &used));
    CHECK_EQ(key_revoke(w->core, "another", key.id, true, &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "key_not_found");
    CHECK_OK(key_revoke(w->core, "default", key.id, true, &err));
    CHECK_EQ(key_check(w->core, text, &used), -EACCES);
    world_restart(w, 0);
    CHECK_EQ(key_check(w->core, text, &used), -EACCES);
    CHECK_OK(key_check(w->core, WORLD_KEY, &used)); /* the first one, still */
    CHECK_EQ(used.role, KEY_ADMIN);
    CHECK_EQ(key_revoke(w->core, "default", used.id, false, &err), -EPERM);
    CHECK_STR(failure_name(err.failure), "forbidden");

    struct key *keys;
    size_t n;
    CHECK_OK(key_list(w->core, "default", &keys, &n, &err));
    CHECK_EQ(n, 1);
    CHECK_STR(keys[0].name, "first");
    CHECK(keys[0].last_used_ms > 0);
    free(keys);
    CHECK_EQ(key_create(w->core, "default", "a b", KEY_MEMBER, &key, text, &err), -EINVAL);
    world_free(w);
}

TEST(a_first_key_that_ends_in_a_short_word_counts_whole)
{
    struct world *w = world_new(0);
    struct key used;
    struct err err = ERR_INIT;
    core_free(w->core);
    struct core_config config = { .data_dir = w->dir,
                                  .run_dir = w->dir,
                                  .first_key = "my_very_own_secret_key_1" };
    CHECK_OK(core_new(&config, &w->core, &err));
    CHECK_OK(key_check(w->core, "my_very_own_secret_key_1", &used));
    CHECK_EQ(key_check(w->core, "1", &used), -EACCES);
    CHECK_EQ(key_check(w->core, "another_1", &used), -EACCES);
    core_free(w->core);
    w->core = NULL;
    config.first_key = "too short";
    CHECK_EQ(core_new(&config, &w->core, &err), -EINVAL);
    CHECK(strstr(err.msg, "WARREN_API_KEY") != NULL);
    world_free(w);
}
