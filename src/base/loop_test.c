#include "base/loop.h"

#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"

struct thing {
    struct loop *loop;
    struct watch watch;
    struct deadline first, second;
    struct later later;
    unsigned calls, cleared, ended;
    int64_t at_ms;
};

static void on_second(struct deadline *d)
{
    struct thing *t = container_of(d, struct thing, second);
    t->at_ms = clock_mono_ms();
    loop_stop(t->loop);
}

static void on_first(struct deadline *d)
{
    struct thing *t = container_of(d, struct thing, first);
    t->calls++;
}

static void never(struct deadline *d)
{
    struct thing *t = container_of(d, struct thing, first);
    t->cleared++;
}

TEST(loop_meets_a_deadline_once_and_never_early)
{
    struct thing t = { 0 };
    CHECK_OK(loop_new(&t.loop));
    int64_t want = clock_mono_ms() + 150;
    loop_deadline(t.loop, &t.first, want - 100, on_first);
    loop_deadline(t.loop, &t.second, want, on_second);
    CHECK_OK(loop_run(t.loop, 0, NULL, NULL));
    CHECK(t.at_ms >= want);
    CHECK_EQ(t.calls, 1);
    loop_free(t.loop);
}

TEST(loop_forgets_a_deadline_that_was_cleared_or_replaced)
{
    struct thing t = { 0 };
    CHECK_OK(loop_new(&t.loop));
    loop_deadline(t.loop, &t.first, clock_mono_ms(), never);
    loop_no_deadline(t.loop, &t.first);
    loop_no_deadline(t.loop, &t.first); /* twice is fine */
    loop_deadline(t.loop, &t.second, clock_mono_ms() + 1000000, on_second);
    loop_deadline(t.loop, &t.second, clock_mono_ms() + 20, on_second);
    CHECK_OK(loop_run(t.loop, 0, NULL, NULL));
    CHECK_EQ(t.cleared, 0);
    loop_free(t.loop);
}

static void on_end(struct later *later)
{
    struct thing *t = container_of(later, struct thing, later);
    t->ended = t->calls + 1;
}

static void on_byte(struct watch *w, uint32_t events)
{
    struct thing *t = container_of(w, struct thing, watch);
    loop_defer(t->loop, &t->later, on_end);
    t->calls++;
    loop_remove(t->loop, w);
    loop_stop(t->loop);
}

TEST(loop_ends_what_was_deferred_after_the_callbacks)
{
    struct thing t = { .watch = { -1, on_byte } };
    int fds[2];
    CHECK_OK(pipe(fds));
    CHECK_OK(loop_new(&t.loop));
    CHECK_OK(loop_add(t.loop, &t.watch, fds[0], EPOLLIN));
    CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_OK(loop_run(t.loop, 0, NULL, NULL));
    CHECK_EQ(t.calls, 1);
    CHECK_EQ(t.ended, 2);
    loop_free(t.loop);
    (void)close(fds[0]);
    (void)close(fds[1]);
}
