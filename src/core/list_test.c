#include "core/list.h"

#include "core/fake_keeper.h"

TEST(a_cursor_comes_back_and_a_forged_one_does_not)
{
    static const char *const bad[] = {
        "",
        "-",
        "abc",
        "12-",
        "-abcdefghijklmnopqrst",
        "12-ABCDEFGHIJKLMNOPQRST",
        "xyz-abcdefghijklmnopqrst",
        "12-abcdefghijklmnopqrstu",
        "ffffffffffffffff-abcdefghijklmnopqrst",
    };
    char text[CURSOR_SIZE], id[ID_SIZE];
    int64_t ms;
    cursor_write(1700000000123, "abcdefghijklmnopqrst", text);
    CHECK_OK(cursor_read(text, &ms, id));
    CHECK_EQ(ms, 1700000000123);
    CHECK_STR(id, "abcdefghijklmnopqrst");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_EQ(cursor_read(bad[i], &ms, id), -EINVAL);
}

static void make(struct core *core, const char *kind)
{
    struct sandbox s;
    struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    CHECK_OK(pairs_add(&spec.metadata, "kind", kind));
    CHECK_OK(sandbox_create(core, "default", &spec, &s, NULL));
    sandbox_done(&s);
    sandbox_spec_done(&spec);
}

/* Walks all pages of two; returns how many there were, each once and in order. */
static size_t walk(struct core *core, struct sandbox_filter f, bool remove_one)
{
    _cleanup_free_ char *cursor = NULL;
    size_t total = 0;
    int64_t last_ms = 0;
    char last_id[ID_SIZE] = "";
    f.limit = 2;
    do {
        struct sandbox_list list;
        f.cursor = cursor;
        CHECK_OK(sandbox_list(core, "default", &f, &list, NULL));
        for (size_t i = 0; i < list.n; i++) {
            const struct sandbox *s = &list.items[i];
            int order = s->created_ms != last_ms ? (s->created_ms > last_ms ? 1 : -1)
                                                 : strcmp(s->id, last_id);
            if (total++)
                CHECK(f.ascending ? order > 0 : order < 0);
            last_ms = s->created_ms;
            memcpy(last_id, s->id, ID_SIZE);
        }
        free(cursor);
        cursor = list.next_cursor;
        list.next_cursor = NULL;
        if (remove_one) /* of the page that was given; the rest must still come */
            CHECK_OK(sandbox_delete(core, "default", list.items[list.n - 1].id, NULL));
        remove_one = false;
        sandbox_list_done(&list);
    } while (cursor);
    return total;
}

TEST(lists_page_in_order_while_sandboxes_go)
{
    struct world *w = world_new(0);
    for (int i = 0; i < 7; i++)
        make(w->core, i % 2 ? "odd" : "even");

    struct sandbox_filter all = { .ascending = true }, down = { .ascending = false };
    CHECK_EQ(walk(w->core, all, false), 7);
    CHECK_EQ(walk(w->core, down, false), 7);
    struct sandbox_filter odd = { .ascending = true };
    CHECK_OK(pairs_add(&odd.metadata, "kind", "odd"));
    CHECK_EQ(walk(w->core, odd, false), 3);
    pairs_done(&odd.metadata);

    /* The very one that the cursor names may go meanwhile. */
    CHECK_EQ(walk(w->core, all, true), 7);
    CHECK_EQ(walk(w->core, all, false), 6);
    struct sandbox_filter both = { .states = ~0u };
    CHECK_EQ(walk(w->core, both, false), 7); /* with the record of the one that is gone */
    both.ascending = true;
    CHECK_EQ(walk(w->core, both, false), 7);
    struct sandbox_filter gone = { .states = 1u << SANDBOX_GONE };
    CHECK_EQ(walk(w->core, gone, false), 1);
    struct sandbox_filter stopped = { .states = 1u << SANDBOX_STOPPED };
    CHECK_EQ(walk(w->core, stopped, false), 0);

    struct sandbox_filter bad = { .cursor = "nonsense" };
    struct sandbox_list list;
    struct err err = ERR_INIT;
    CHECK_EQ(sandbox_list(w->core, "default", &bad, &list, &err), -EINVAL);
    CHECK_STR(failure_name(err.failure), "invalid_query");
    world_free(w);
}
