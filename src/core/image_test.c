#include "core/image.h"

#include <sqlite3.h>

#include "core/fake_keeper.h"

static int import(struct core *core, const char *name, const char *text, struct image *ret_image,
                  struct err *err)
{
    struct image_import *imp;
    int r = image_import_begin(core, "default", name, false, &imp, err);
    if (r < 0)
        return r;
    for (const char *p = text; *p; p++)
        CHECK_OK(image_import_write(imp, p, 1, err));
    return image_import_finish(imp, ret_image, err);
}

TEST(an_import_is_kept_as_a_blob_and_found_again)
{
    struct world *w = world_new(0);
    struct err err = ERR_INIT;
    struct image image, got;
    CHECK_OK(import(w->core, "repo/tool:1", "abc", &image, &err));
    CHECK_STR(image.chain,
              "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_EQ(image.size_bytes, 3);
    CHECK_EQ(strlen(image.tree), 64);
    CHECK_OK(image_resolve(w->core, "default", "repo/tool:1", &got, NULL, &err));
    CHECK_STR(got.tree, image.tree);
    world_restart(w, 0);
    CHECK_OK(image_resolve(w->core, "default", "repo/tool:1", &got, NULL, &err));
    CHECK_STR(got.tree, image.tree);

    struct image *all;
    size_t n;
    CHECK_OK(image_list(w->core, "default", NULL, &all, &n, &err));
    CHECK_EQ(n, 2);
    CHECK_STR(all[0].name, "base");
    free(all);
    CHECK_EQ(import(w->core, "Bad Name", "abc", &image, &err), -EINVAL);
    world_free(w);
}

TEST(a_replaced_tree_goes_when_its_last_sandbox_does)
{
    struct world *w = world_new(2);
    struct err err = ERR_INIT;
    struct image first, second;
    struct sandbox s;
    CHECK_OK(import(w->core, "tool", "one", &first, &err));
    struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    spec.image = strdup("tool");
    CHECK_OK(sandbox_create(w->core, "default", &spec, &s, &err));
    CHECK_OK(import(w->core, "tool", "two", &second, &err));
    CHECK_EQ(w->k.n_images, 2); /* the first is still in use */
    CHECK_EQ(image_remove(w->core, "default", "tool", &err), 0);
    CHECK_EQ(w->k.n_images, 1);
    CHECK_OK(sandbox_delete(w->core, "default", s.id, &err));
    CHECK_EQ(w->k.n_images, 0);
    CHECK_EQ(image_remove(w->core, "default", "tool", &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "image_not_found");
    sandbox_done(&s);
    sandbox_spec_done(&spec);
    world_free(w);
}

TEST(an_image_in_use_stays_and_one_that_only_the_pool_uses_goes)
{
    struct world *w = world_new(3);
    struct err err = ERR_INIT;
    struct core_counts c;
    struct sandbox s;
    struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    WAIT_FOR((core_counts(w->core, &c), c.pool_ready == 3));
    CHECK_OK(sandbox_create(w->core, "default", &spec, &s, &err));
    CHECK_EQ(image_remove(w->core, "default", "base", &err), -EBUSY);
    CHECK_STR(failure_name(err.failure), "image_in_use");
    CHECK_OK(sandbox_delete(w->core, "default", s.id, &err));
    CHECK_OK(image_remove(w->core, "default", "base", &err));
    CHECK_EQ(fake_count(&w->k), 0);
    sandbox_done(&s);
    world_free(w);
}

TEST(a_failed_or_abandoned_import_leaves_nothing)
{
    struct world *w = world_new(0);
    struct err err = ERR_INIT;
    struct image image;
    struct image_import *imp;
    fake_fail_next(&w->k, KEEPER_LAYER_PUT, EINVAL, "invalid_image");
    CHECK_EQ(import(w->core, "tool", "abc", &image, &err), -EINVAL);
    CHECK_STR(failure_name(err.failure), "invalid_image");
    CHECK_OK(image_import_begin(w->core, "default", "tool", false, &imp, &err));
    CHECK_OK(image_import_write(imp, "abc", 3, &err));
    image_import_abort(imp);
    CHECK_EQ(w->k.n_images, 0);
    fake_drop_next(&w->k, KEEPER_LAYER_PUT);
    CHECK_EQ(import(w->core, "tool", "abc", &image, &err), -ENOTCONN);
    CHECK_STR(failure_name(err.failure), "keeper_unavailable");
    CHECK_EQ(image_resolve(w->core, "default", "tool", &image, NULL, &err), -ENOENT);
    world_free(w);
}

TEST(an_image_of_a_state_without_layers_becomes_one_with_a_layer)
{
    struct world *w = world_new(0);
    struct err err = ERR_INIT;
    struct image image;
    struct image_export *exp;
    char path[128];
    sqlite3 *db;
    core_free(w->core);
    (void)snprintf(path, sizeof(path), "%s/state/warren.db", w->dir);
    CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_EQ(
        sqlite3_exec(db,
                     "INSERT INTO images VALUES ('old', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
                     "bbbbbbbbbbbbbbbbbbbbbbbbb', 'sha256:x', 77, 5000)",
                     NULL, NULL, NULL),
        SQLITE_OK);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
    (void)world_start(w, 0);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(image_resolve(w->core, "another-team", "old", &image, NULL, &err));
        CHECK_EQ(image.size_bytes, 77);
        CHECK_EQ(image.created_ms, 5000);
        CHECK_EQ(image.tree[0], 'b');
        CHECK_EQ(image_export_begin(w->core, &image, IMAGE_OCI, &exp, &err), -ENOENT);
        CHECK(strstr(err.msg, "import it again") != NULL);
        world_restart(w, 0);
    }
    world_free(w);
}

TEST(names_are_of_one_shape)
{
    static const char *const good[] = { "a", "base", "repo/name:tag",
                                        "h.io:5000/a/b_c-d.e:V1.2_x-y", "a:latest" };
    static const char *const bad[] = { "",   "A",     "a/",     "/a",        "a//b", "a b",
                                       "a:", "a:.x",  "a:b/c:", "..",        "a/..", "a/../b",
                                       "-a", "a:b c", "a\nb",   "a@sha256:x" };
    char name[IMAGE_NAME_MAX];
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CHECK(image_name_valid(good[i]));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!image_name_valid(bad[i]));
    CHECK_OK(image_name_normal("h:1/a:latest", name, NULL));
    CHECK_STR(name, "h:1/a");
    CHECK_OK(image_name_normal("h:1/a:later", name, NULL));
    CHECK_STR(name, "h:1/a:later");
}

TEST(a_team_sees_its_own_and_public_images_and_removes_only_its_own)
{
    struct world *w = world_new(0);
    struct err err = ERR_INIT;
    struct image image, *all;
    struct image_import *imp;
    size_t n = 0;
    CHECK_OK(image_import_begin(w->core, "red", "tool", false, &imp, &err));
    CHECK_OK(image_import_write(imp, "abc", 3, &err));
    CHECK_OK(image_import_finish(imp, &image, &err));
    CHECK_EQ(image_resolve(w->core, "blue", "tool", &image, NULL, &err), -ENOENT);
    CHECK_OK(image_list(w->core, "blue", NULL, &all, &n, &err));
    CHECK_EQ(n, 1); /* base, which is public */
    free(all);
    CHECK_EQ(image_remove(w->core, "blue", "base", &err), -EPERM);
    CHECK_STR(failure_name(err.failure), "forbidden");
    CHECK_EQ(image_remove(w->core, "blue", "tool", &err), -ENOENT);
    CHECK_OK(image_tag(w->core, "red", "base", "base", &image, &err));
    CHECK_STR(image.owner, "red");
    CHECK(!image.public);
    CHECK_OK(image_remove(w->core, "red", "base", &err)); /* its own name alone */
    CHECK_OK(image_resolve(w->core, "red", "base", &image, NULL, &err));
    CHECK_OK(image_remove(w->core, "red", "tool", &err));
    world_free(w);
}
