#include "state/store.h"

#include <errno.h>
#include <ftw.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"

struct place {
    char dir[64];
};

static struct place place_new(void)
{
    struct place p = { "/tmp/warren-store-XXXXXX" };
    assert_non_null(mkdtemp(p.dir));
    return p;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    return remove(path);
}

static void place_done(struct place *p)
{
    (void)nftw(p->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static struct store *opened(const struct place *p)
{
    struct store *store;
    struct err err = ERR_INIT;
    if (store_open(p->dir, &store, &err) < 0)
        fail_msg("%s", err.msg);
    return store;
}

static struct store_sandbox row_of(const char *id, const char *name)
{
    return (struct store_sandbox){ .id = id,
                                   .owner = "o",
                                   .name = name,
                                   .state = "running",
                                   .cause = "none",
                                   .tree = "t",
                                   .spec = "{}",
                                   .created_ms = 1 };
}

static int count(void *ctx, const struct store_sandbox *row)
{
    (*(int *)ctx)++;
    return 0;
}

static int keep_state(void *ctx, const struct store_sandbox *row)
{
    (void)snprintf(ctx, 64, "%s/%s/%lld", row->id, row->state, (long long)row->ended_ms);
    return 0;
}

TEST(sandboxes_survive_and_names_are_unique_among_the_living)
{
    _cleanup_(place_done) struct place p = place_new();
    struct store *store = opened(&p);
    struct store_sandbox a = row_of("a", "x"), b = row_of("b", "x"), c = row_of("c", NULL),
                         d = row_of("d", NULL);
    CHECK_OK(store_sandbox_add(store, &a, NULL));
    CHECK_EQ(store_sandbox_add(store, &b, NULL), -EEXIST);
    CHECK_OK(store_sandbox_add(store, &c, NULL));
    CHECK_OK(store_sandbox_add(store, &d, NULL));
    c.name = "x";
    CHECK_EQ(store_sandbox_save(store, &c, NULL), -EEXIST);
    a.state = "gone";
    a.ended_ms = 77;
    CHECK_OK(store_sandbox_mark(store, &a, NULL));
    CHECK_OK(store_sandbox_save(store, &c, NULL));
    store_close(store);

    store = opened(&p);
    int n = 0;
    char text[64] = "";
    CHECK_OK(store_sandbox_live(store, count, &n, NULL));
    CHECK_EQ(n, 2);
    CHECK_OK(store_sandbox_gone(store, "o", "x", keep_state, text, NULL));
    CHECK_STR(text, "a/gone/77");
    text[0] = '\0';
    CHECK_OK(store_sandbox_gone(store, "o", "a", keep_state, text, NULL));
    CHECK_STR(text, "a/gone/77");
    text[0] = '\0';
    CHECK_OK(store_sandbox_gone(store, "p", "a", keep_state, text, NULL));
    CHECK_OK(store_sandbox_gone(store, "o", "c", keep_state, text, NULL));
    CHECK_STR(text, "");
    store_close(store);
}

TEST(records_are_forgotten_by_age_and_by_number)
{
    _cleanup_(place_done) struct place p = place_new();
    struct store *store = opened(&p);
    for (int i = 1; i <= 30; i++) {
        char id[16];
        CHECK(snprintf(id, sizeof(id), "s%d", i) > 0);
        struct store_sandbox row = row_of(id, i % 2 ? "n" : NULL);
        row.ended_ms = i;
        row.created_ms = i;
        CHECK_OK(store_sandbox_add(store, &row, NULL));
    }
    int n = 0;
    CHECK_OK(store_sandbox_prune(store, 11, 1000, NULL));
    CHECK_OK(store_sandbox_gone_list(store, "o", true, 0, "", count, &n, NULL));
    CHECK_EQ(n, 20);
    CHECK_OK(store_sandbox_prune(store, 0, 5, NULL));
    n = 0;
    CHECK_OK(store_sandbox_gone_list(store, "o", false, 100, "", count, &n, NULL));
    CHECK_EQ(n, 5);
    n = 0;
    CHECK_OK(store_sandbox_gone_list(store, "o", true, 28, "s28", count, &n, NULL));
    CHECK_EQ(n, 2);
    store_close(store);
}

TEST(facts_are_kept_and_replaced)
{
    _cleanup_(place_done) struct place p = place_new();
    struct store *store = opened(&p);
    _cleanup_free_ char *value = NULL;
    CHECK_EQ(store_meta_get(store, "k", &value, NULL), 0);
    CHECK_OK(store_meta_set(store, "k", "1", NULL));
    CHECK_OK(store_meta_set(store, "k", "2", NULL));
    CHECK_EQ(store_meta_get(store, "k", &value, NULL), 1);
    CHECK_STR(value, "2");
    store_close(store);
}

TEST(a_second_daemon_and_a_newer_state_are_refused)
{
    _cleanup_(place_done) struct place p = place_new();
    struct store *store = opened(&p), *second;
    struct err err = ERR_INIT;
    CHECK_EQ(store_open(p.dir, &second, &err), -EBUSY);
    CHECK_OK(store_meta_set(store, "schema", "9999", NULL));
    store_close(store);
    CHECK_EQ(store_open(p.dir, &second, &err), -EPROTO);
    CHECK(strstr(err.msg, "newer") != NULL);
}

TEST(a_file_that_is_no_database_is_refused)
{
    _cleanup_(place_done) struct place p = place_new();
    char path[128];
    struct err err = ERR_INIT;
    struct store *store;
    CHECK(snprintf(path, sizeof(path), "%s/warren.db", p.dir) > 0);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 5000; i++)
        (void)fputs("nonsense", f);
    (void)fclose(f);
    CHECK_EQ(store_open(p.dir, &store, &err), -EIO);
}

TEST(a_build_step_is_found_until_it_is_replaced)
{
    _cleanup_(place_done) struct place p = place_new();
    _cleanup_(store_closep) struct store *store = opened(&p);
    _cleanup_free_ char *chain = NULL, *again = NULL, *none = NULL;
    int64_t made_ms = 0;
    CHECK_EQ(store_build_get(store, "k", 1, &none, &made_ms, NULL), 0);
    CHECK_OK(store_build_put(store, "k", "red", "a", 1, NULL));
    CHECK_OK(store_build_put(store, "k", "red", "b", 2, NULL));
    CHECK_EQ(store_build_get(store, "k", 3, &chain, &made_ms, NULL), 1);
    CHECK_STR(chain, "b");
    CHECK_EQ(store_build_get(store, "k", 4, &again, &made_ms, NULL), 1);
    CHECK_EQ(made_ms, 2); /* when it was done, not when it was used */
}

TEST(a_team_forgets_its_build_steps_and_nobody_elses)
{
    _cleanup_(place_done) struct place p = place_new();
    _cleanup_(store_closep) struct store *store = opened(&p);
    _cleanup_free_ char *none = NULL, *chain = NULL, *other = NULL;
    CHECK_OK(store_build_put(store, "r", "red", "a", 1, NULL));
    CHECK_OK(store_build_put(store, "b", "blue", "a", 2, NULL));
    CHECK_OK(store_build_put(store, "o", "red", "c", 2, NULL));
    CHECK_EQ(store_build_other(store, "a", "red", &other, NULL), 1);
    CHECK_STR(other, "blue");
    CHECK_EQ(store_build_other(store, "c", "red", &none, NULL), 0);
    CHECK_OK(store_build_forget(store, "red", NULL));
    CHECK_EQ(store_build_get(store, "r", 3, &none, NULL, NULL), 0);
    CHECK_EQ(store_build_get(store, "b", 3, &chain, NULL, NULL), 1);
}
