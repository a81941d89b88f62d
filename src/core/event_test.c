#include "core/event.h"

#include "core/fake_keeper.h"

static void *emit_soon(void *ctx)
{
    (void)usleep(30000);
    event_emit(ctx, "default", NULL, "other.one", NULL);
    event_emit(ctx, "default", "abcdefghijklmnopqrst", "sandbox.oom", "{\"n\":1}");
    return NULL;
}

TEST(events_are_read_from_a_place_and_waited_for)
{
    struct world *w = world_new(0);
    struct event_list list;
    for (int i = 0; i < 5; i++)
        event_emit(w->core, i % 2 ? "another" : "default", NULL, "x.y", NULL);
    CHECK_OK(event_read(w->core, "default", NULL, 1, 2, 0, &list, NULL)); /* 1: image.added */
    CHECK_EQ(list.n, 2);
    CHECK_EQ(list.items[0].seq, 2);
    CHECK_EQ(list.next, list.items[1].seq);
    int64_t next = list.next;
    event_list_done(&list);
    CHECK_OK(event_read(w->core, "default", NULL, next, 2, 0, &list, NULL));
    CHECK_EQ(list.n, 1);
    next = list.next;
    CHECK_EQ(next, 6);
    event_list_done(&list);

    int64_t began = clock_mono_ms();
    CHECK_OK(event_read(w->core, "default", NULL, next, 2, 20, &list, NULL));
    CHECK_EQ(list.n, 0);
    CHECK_EQ(list.next, next);
    CHECK(clock_mono_ms() - began >= 20);
    event_list_done(&list);

    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, emit_soon, w->core), 0);
    CHECK_OK(event_read(w->core, "default", "abcdefghijklmnopqrst", next, 9, 10000, &list, NULL));
    (void)pthread_join(t, NULL);
    CHECK_EQ(list.n, 1);
    CHECK_STR(list.items[0].type, "sandbox.oom");
    CHECK_STR(list.items[0].data, "{\"n\":1}");
    event_list_done(&list);

    world_restart(w, 0);
    CHECK_OK(event_read(w->core, "default", NULL, next, 9, 0, &list, NULL));
    CHECK_EQ(list.n, 2);
    event_list_done(&list);
    world_free(w);
}

TEST(only_the_newest_events_are_kept)
{
    struct world *w = world_new(0);
    int64_t last;
    for (int i = 0; i < 50; i++)
        event_emit(w->core, "default", NULL, "x.y", NULL);
    CHECK_OK(store_event_prune(w->core->store, 10, NULL));
    CHECK_OK(store_event_last(w->core->store, &last, NULL));
    CHECK_EQ(last, 51);
    struct event_list list;
    CHECK_OK(event_read(w->core, "default", NULL, 0, 100, 0, &list, NULL));
    CHECK_EQ(list.n, 10);
    CHECK_EQ(list.items[0].seq, 42);
    event_list_done(&list);
    world_free(w);
}
