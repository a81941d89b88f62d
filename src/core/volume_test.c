#include "core/volume.h"

#include "core/fake_keeper.h"
#include "core/secret.h"
#include "core/volume_checkpoint.h"

#define MIB (1024ull * 1024)

static struct sandbox_spec spec_with(const char *volume, const char *path)
{
    struct sandbox_spec spec;
    struct err err = ERR_INIT;
    sandbox_spec_init(&spec);
    CHECK_OK(spec_add_mount(&spec, volume, path, false, &err));
    return spec;
}

TEST(a_volume_is_there_after_a_restart_and_its_name_is_taken)
{
    struct world *w = world_new(0);
    struct volume v, again;
    struct err err = ERR_INIT;
    CHECK_OK(volume_create(w->core, OWNER_DEFAULT, "data", 64 * MIB, &v, NULL));
    CHECK_EQ(volume_create(w->core, OWNER_DEFAULT, "data", 64 * MIB, &again, &err), -EEXIST);
    CHECK_STR(failure_name(err.failure), "name_taken");
    (void)world_restart(w, 0);
    CHECK_OK(volume_get(w->core, OWNER_DEFAULT, "data", &again, NULL));
    CHECK_STR(again.id, v.id);
    CHECK_EQ(again.size_bytes, 64 * MIB);
    CHECK_EQ(volume_get(w->core, "other", v.id, &again, NULL), -ENOENT);
    world_free(w);
}

TEST(a_volume_that_a_sandbox_sees_stays)
{
    struct world *w = world_new(0);
    struct sandbox s;
    struct volume v;
    struct err err = ERR_INIT;
    CHECK_OK(volume_create(w->core, OWNER_DEFAULT, "data", 64 * MIB, &v, NULL));
    struct sandbox_spec spec = spec_with("data", "/a//b/../c/");
    CHECK_OK(sandbox_create(w->core, OWNER_DEFAULT, &spec, &s, NULL));
    CHECK_STR(s.spec.mounts[0].volume, v.id);
    CHECK_STR(s.spec.mounts[0].path, "/a/c");
    CHECK_EQ(fake_asked(&w->k, KEEPER_ATTACH), 1);
    CHECK_EQ(volume_remove(w->core, OWNER_DEFAULT, "data", &err), -EBUSY);
    CHECK_STR(failure_name(err.failure), "volume_in_use");
    (void)world_restart(w, 0); /* and it is known afterwards too */
    CHECK_EQ(volume_remove(w->core, OWNER_DEFAULT, "data", NULL), -EBUSY);
    CHECK_OK(sandbox_delete(w->core, OWNER_DEFAULT, s.id, NULL));
    CHECK_OK(volume_remove(w->core, OWNER_DEFAULT, "data", NULL));
    CHECK_EQ(fake_asked(&w->k, KEEPER_VOLUME_RM), 1);
    sandbox_done(&s);
    sandbox_spec_done(&spec);
    world_free(w);
}

TEST(a_sandbox_whose_volume_cannot_be_shown_is_not_made)
{
    struct world *w = world_new(2); /* also not from a ready cell */
    struct sandbox s;
    struct volume v;
    struct err err = ERR_INIT;
    CHECK_OK(volume_create(w->core, OWNER_DEFAULT, "data", 64 * MIB, &v, NULL));
    struct sandbox_spec spec = spec_with("data", "/data");
    fake_fail_next(&w->k, KEEPER_ATTACH, ENOTDIR, "internal");
    CHECK_EQ(sandbox_create(w->core, OWNER_DEFAULT, &spec, &s, &err), -ENOTDIR);
    CHECK_OK(volume_remove(w->core, OWNER_DEFAULT, "data", NULL)); /* nothing holds it */
    sandbox_spec_done(&spec);
    world_free(w);
}

TEST(a_volume_that_the_keeper_refuses_leaves_nothing)
{
    struct world *w = world_new(0);
    struct volume v;
    fake_fail_next(&w->k, KEEPER_VOLUME_PUT, ENOSPC, "no_space");
    CHECK_EQ(volume_create(w->core, OWNER_DEFAULT, "data", 64 * MIB, &v, NULL), -ENOSPC);
    CHECK_OK(volume_create(w->core, OWNER_DEFAULT, "data", 64 * MIB, &v, NULL));
    world_free(w);
}

TEST(requests_share_a_volumes_cell)
{
    struct world *w = world_new(0);
    struct sandbox a, b;
    struct volume v;
    CHECK_OK(volume_create(w->core, OWNER_DEFAULT, "data", 64 * MIB, &v, NULL));
    unsigned made = fake_asked(&w->k, KEEPER_MAKE);
    CHECK_OK(volume_enter(w->core, OWNER_DEFAULT, "data", &a, NULL));
    CHECK_OK(volume_enter(w->core, NULL, v.id, &b, NULL));
    CHECK_STR(a.id, b.id);
    CHECK_STR(a.root, "/volume");
    CHECK_EQ(fake_asked(&w->k, KEEPER_MAKE), made + 1);
    CHECK_EQ(volume_remove(w->core, OWNER_DEFAULT, "data", NULL), -EBUSY);
    volume_leave(w->core, &a);
    volume_leave(w->core, &b);
    CHECK_OK(volume_remove(w->core, OWNER_DEFAULT, "data", NULL));
    CHECK_EQ(volume_enter(w->core, NULL, v.id, &a, NULL), -ENOENT);
    sandbox_done(&a);
    sandbox_done(&b);
    world_free(w);
}

TEST(places_that_no_volume_can_have_are_refused)
{
    static const char *const bad[] = { "", "a", "/", "/..", "/proc", "/dev/x", "/sys/", "/a\tb" };
    struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_EQ(spec_add_mount(&spec, "v", bad[i], false, NULL), -EINVAL);
    CHECK_OK(spec_add_mount(&spec, "v", "/b", false, NULL));
    CHECK_OK(spec_add_mount(&spec, "v", "/a", true, NULL));
    CHECK_EQ(spec_add_mount(&spec, "v", "/b/", false, NULL), -EINVAL);
    CHECK_STR(spec.mounts[0].path, "/a"); /* what may lie below another comes after it */
    sandbox_spec_done(&spec);
}

TEST(a_checkpoint_of_a_volume_is_there_after_a_restart_and_goes_with_it)
{
    struct world *w = world_new(0);
    struct volume_checkpoint c, again, *list = NULL;
    struct volume v, copy;
    struct err err = ERR_INIT;
    size_t n = 0;
    CHECK_OK(volume_create(w->core, OWNER_DEFAULT, "data", 64 * MIB, &v, NULL));
    CHECK_OK(volume_checkpoint_create(w->core, OWNER_DEFAULT, "data", "one", "why", &c, NULL));
    CHECK_EQ(volume_checkpoint_create(w->core, OWNER_DEFAULT, v.id, "one", NULL, &again, &err),
             -EEXIST);
    CHECK_STR(failure_name(err.failure), "name_taken");
    (void)world_restart(w, 0);
    CHECK_OK(volume_checkpoint_get(w->core, OWNER_DEFAULT, "data", "one", &again, NULL));
    CHECK_STR(again.id, c.id);
    CHECK_STR(again.comment, "why");
    CHECK_OK(volume_checkpoint_fork(w->core, OWNER_DEFAULT, "data", "one", "copy", 0, &copy, NULL));
    CHECK_EQ(copy.size_bytes, 64 * MIB);
    CHECK_OK(volume_remove(w->core, OWNER_DEFAULT, "data", NULL));
    CHECK_EQ(fake_asked(&w->k, KEEPER_VOLUME_POINT_RM), 1);
    (void)world_restart(w, 0);
    CHECK_OK(volume_checkpoint_list(w->core, OWNER_DEFAULT, "copy", &list, &n, NULL));
    CHECK_EQ(n, 0);
    free(list);
    world_free(w);
}

TEST(a_volume_that_a_running_sandbox_sees_does_not_go_back)
{
    struct world *w = world_new(0);
    struct volume_checkpoint c;
    struct sandbox s;
    struct volume v;
    struct err err = ERR_INIT;
    CHECK_OK(volume_create(w->core, OWNER_DEFAULT, "data", 64 * MIB, &v, NULL));
    CHECK_OK(volume_checkpoint_create(w->core, OWNER_DEFAULT, "data", NULL, NULL, &c, NULL));
    struct sandbox_spec spec = spec_with("data", "/data");
    CHECK_OK(sandbox_create(w->core, OWNER_DEFAULT, &spec, &s, NULL));
    CHECK_EQ(volume_checkpoint_restore(w->core, OWNER_DEFAULT, "data", c.id, &v, &err), -EBUSY);
    CHECK_STR(failure_name(err.failure), "volume_in_use");
    CHECK(strstr(err.msg, s.id) != NULL);
    CHECK_EQ(fake_asked(&w->k, KEEPER_VOLUME_RESTORE), 0);
    CHECK_OK(sandbox_delete(w->core, OWNER_DEFAULT, s.id, NULL));
    CHECK_OK(volume_checkpoint_restore(w->core, OWNER_DEFAULT, "data", c.id, &v, NULL));
    CHECK_EQ(fake_asked(&w->k, KEEPER_VOLUME_RESTORE), 1);
    sandbox_done(&s);
    sandbox_spec_done(&spec);
    world_free(w);
}

TEST(a_checkpoint_whose_files_cannot_be_kept_is_none)
{
    struct world *w = world_new(0);
    struct volume_checkpoint c;
    struct volume v;
    CHECK_OK(volume_create(w->core, OWNER_DEFAULT, "data", 64 * MIB, &v, NULL));
    fake_fail_next(&w->k, KEEPER_VOLUME_POINT_PUT, ENOSPC, "no_space");
    CHECK_EQ(volume_checkpoint_create(w->core, OWNER_DEFAULT, "data", "one", NULL, &c, NULL),
             -ENOSPC);
    CHECK_EQ(volume_checkpoint_get(w->core, OWNER_DEFAULT, "data", "one", &c, NULL), -ENOENT);
    CHECK_OK(volume_checkpoint_create(w->core, OWNER_DEFAULT, "data", "one", NULL, &c, NULL));
    CHECK_OK(volume_remove(w->core, OWNER_DEFAULT, "data", NULL)); /* nothing holds it */
    world_free(w);
}

TEST(a_bucket_asks_nothing_of_the_keeper_until_it_is_seen)
{
    struct world *w = world_new(0);
    struct bucket b = { .endpoint = "https://s3.example:9000",
                        .bucket = "bucket",
                        .prefix = "a/b",
                        .region = "here-1",
                        .access_key = "KEY",
                        .secret = "s3",
                        .path_style = true };
    struct secret secret = { 0 };
    struct sandbox s;
    struct volume v, again;
    struct err err = ERR_INIT;
    CHECK_EQ(volume_create_bucket(w->core, OWNER_DEFAULT, "b", &b, &v, &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "secret_not_found");
    CHECK_OK(secret_create(w->core, OWNER_DEFAULT, "s3", "half", NULL, &secret, NULL));
    CHECK_OK(volume_create_bucket(w->core, OWNER_DEFAULT, "b", &b, &v, NULL));
    (void)world_restart(w, 0);
    CHECK_OK(volume_get(w->core, OWNER_DEFAULT, "b", &again, NULL));
    CHECK(volume_is_bucket(&again) && again.bucket.path_style && !again.bucket.read_only);
    CHECK_STR(again.bucket.endpoint, b.endpoint);
    CHECK_EQ(fake_asked(&w->k, KEEPER_VOLUME_PUT), 0);
    CHECK_EQ(volume_resize(w->core, OWNER_DEFAULT, "b", 64 * MIB, &v, &err), -EINVAL);
    struct sandbox_spec spec = spec_with("b", "/b");
    CHECK_OK(sandbox_create(w->core, OWNER_DEFAULT, &spec, &s, NULL));
    CHECK_EQ(fake_asked(&w->k, KEEPER_ATTACH_BUCKET), 1);
    CHECK_EQ(fake_asked(&w->k, KEEPER_ATTACH), 0);
    CHECK_OK(sandbox_delete(w->core, OWNER_DEFAULT, s.id, NULL));
    CHECK_OK(volume_remove(w->core, OWNER_DEFAULT, "b", NULL));
    CHECK_EQ(fake_asked(&w->k, KEEPER_VOLUME_RM), 0);
    secret_done(&secret);
    sandbox_done(&s);
    sandbox_spec_done(&spec);
    world_free(w);
}

TEST(odd_endpoints_are_refused)
{
    static const char *const bad[] = {
        "",           "s3.example", "ftp://h",        "http://",          "http://:1",
        "http://h:",  "http://h:0", "http://h:65536", "http://h/",        "http://h/p",
        "http://a b", "http://u@h", "http://-h",      "https://h:1234567"
    };
    struct world *w = world_new(0);
    struct volume v;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct bucket b = { .bucket = "bucket", .region = "r", .access_key = "K", .secret = "s" };
        struct err err = ERR_INIT;
        bool slash = strcmp(bad[i], "http://h/") == 0; /* that one is fine */
        (void)snprintf(b.endpoint, sizeof(b.endpoint), "%s", bad[i]);
        CHECK_EQ(volume_create_bucket(w->core, OWNER_DEFAULT, "b", &b, &v, &err),
                 slash ? -ENOENT : -EINVAL);
    }
    world_free(w);
}
