#include "core/table.h"

#include "core/fake_keeper.h"

static struct box *add(struct core *core, int64_t created_ms, const char *name)
{
    struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    spec.name = name ? strdup(name) : NULL;
    struct box *b = box_new("o", &spec, WORLD_TREE);
    assert_non_null(b);
    CHECK_OK(id_random(b->s.id));
    b->s.created_ms = created_ms;
    if (box_add(core, b) < 0) {
        box_free(b);
        return NULL;
    }
    return b;
}

TEST(the_table_grows_finds_and_keeps_its_order)
{
    struct core core = { .run_dir = NULL };
    CHECK_OK(table_init(&core.table));
    for (int i = 0; i < 2000; i++) {
        char name[16];
        CHECK(snprintf(name, sizeof(name), "n%d", i) > 0);
        assert_non_null(add(&core, i * 7919 % 2000 / 3, name));
    }
    CHECK(add(&core, 5, "n77") == NULL);
    CHECK_EQ(core.table.n, 2000);
    for (size_t i = 1; i < core.table.n; i++) {
        const struct sandbox *a = &core.table.sorted[i - 1]->s, *b = &core.table.sorted[i]->s;
        CHECK(a->created_ms < b->created_ms ||
              (a->created_ms == b->created_ms && strcmp(a->id, b->id) < 0));
    }
    struct box *b = box_find(&core.table, "o", "n1234");
    assert_non_null(b);
    CHECK(box_find(&core.table, "o", b->s.id) == b);
    CHECK(box_find(&core.table, "p", "n1234") == NULL);
    CHECK(box_find(&core.table, NULL, b->s.id) == b);
    box_remove(&core, b);
    box_release(&core, b);
    CHECK(box_find(&core.table, "o", "n1234") == NULL);
    CHECK_EQ(core.table.n, 1999);
    table_done(&core.table);
}

struct waiter {
    struct core *core;
    const char *who;
    int result;
};

static void *hold_it(void *ctx)
{
    struct waiter *w = ctx;
    struct box *b;
    w->result = box_hold(w->core, "o", w->who, 5000, &b);
    if (w->result >= 0)
        box_release(w->core, b);
    return NULL;
}

TEST(a_held_box_is_waited_for_and_a_removed_one_is_not_found)
{
    struct core core = { .run_dir = NULL };
    struct box *b, *other;
    CHECK_OK(table_init(&core.table));
    b = add(&core, 1, "x"); /* held by us from the start */
    CHECK_EQ(box_hold(&core, "o", "x", 1, &other), -EBUSY);
    CHECK_EQ(box_hold(&core, "o", "y", 1, &other), -ENOENT);

    struct waiter w[3] = { { &core, "x", 1 }, { &core, "x", 1 }, { &core, "x", 1 } };
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, hold_it, &w[i]), 0);
    (void)usleep(20000);
    box_release(&core, b);
    for (int i = 0; i < 3; i++) {
        (void)pthread_join(t[i], NULL);
        CHECK_EQ(w[i].result, 0);
    }

    CHECK_OK(box_hold(&core, "o", "x", 1, &b));
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, hold_it, &w[i]), 0);
    (void)usleep(20000);
    box_remove(&core, b);
    box_release(&core, b);
    for (int i = 0; i < 3; i++) {
        (void)pthread_join(t[i], NULL);
        CHECK_EQ(w[i].result, -ENOENT);
    }
    table_done(&core.table);
}
