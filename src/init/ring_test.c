#include "init/ring.h"

#include "base/check.h"
#include "base/cleanup.h"

static void put(struct ring *r, unsigned stream, const char *text, uint64_t floor)
{
    size_t n = strlen(text);
    CHECK(ring_room(r, stream, floor) >= n);
    struct iovec iov[2];
    (void)ring_reserve(r, stream, n, iov);
    memcpy(iov[0].iov_base, text, iov[0].iov_len);
    memcpy(iov[1].iov_base, text + iov[0].iov_len, iov[1].iov_len);
    CHECK_EQ(ring_commit(r, stream, n), 0);
}

/* What the ring holds from `offset` on, as "1:text 2:text ". */
static const char *dump(const struct ring *r, uint64_t offset, char out[256])
{
    size_t len = 0;
    out[0] = '\0';
    while (offset < r->tail) {
        struct iovec iov[2];
        unsigned stream;
        size_t n;
        (void)ring_peek(r, offset, 64, iov, &stream, &n);
        int w = snprintf(out + len, 256 - len, "%u:%.*s%.*s ", stream, (int)iov[0].iov_len,
                         (char *)iov[0].iov_base, (int)iov[1].iov_len, (char *)iov[1].iov_base);
        len += (size_t)w;
        offset += n;
    }
    return out;
}

TEST(a_ring_costs_nothing_before_its_first_byte)
{
    _cleanup_(ring_done) struct ring r;
    ring_init(&r, 64);
    CHECK_EQ(ring_memory(&r), 0);
    CHECK_EQ(ring_room(&r, 1, RING_NO_FLOOR), 0);
}

TEST(streams_come_back_in_arrival_order)
{
    _cleanup_(ring_done) struct ring r;
    char out[256];
    ring_init(&r, 64);
    CHECK_OK(ring_resize(&r, 16));
    put(&r, 1, "ab", RING_NO_FLOOR);
    put(&r, 1, "cd", RING_NO_FLOOR);
    put(&r, 2, "ef", RING_NO_FLOOR);
    put(&r, 1, "gh", RING_NO_FLOOR);
    CHECK_STR(dump(&r, 0, out), "1:abcd 2:ef 1:gh ");
    CHECK_STR(dump(&r, 3, out), "1:d 2:ef 1:gh ");
}

TEST(the_oldest_bytes_leave_first_and_offsets_stay_true)
{
    _cleanup_(ring_done) struct ring r;
    char out[256];
    ring_init(&r, 8);
    CHECK_OK(ring_resize(&r, 8));
    put(&r, 1, "abcdef", RING_NO_FLOOR);
    put(&r, 2, "ghijk", RING_NO_FLOOR);
    CHECK_EQ(r.head, 3);
    CHECK_EQ(r.tail, 11);
    CHECK_STR(dump(&r, 3, out), "1:def 2:ghijk ");
    put(&r, 2, "lmnopqrs", RING_NO_FLOOR);
    CHECK_EQ(r.head, 11);
    CHECK_STR(dump(&r, 11, out), "2:lmnopqrs ");
}

TEST(a_reader_s_floor_limits_the_room)
{
    _cleanup_(ring_done) struct ring r;
    ring_init(&r, 8);
    CHECK_OK(ring_resize(&r, 8));
    put(&r, 1, "abcdefgh", RING_NO_FLOOR);
    CHECK_EQ(ring_room(&r, 1, 0), 0);
    CHECK_EQ(ring_room(&r, 1, 5), 5);
    CHECK_EQ(ring_room(&r, 1, RING_NO_FLOOR), 8);
}

TEST(growing_and_shrinking_keeps_the_newest_bytes)
{
    _cleanup_(ring_done) struct ring r;
    char out[256];
    ring_init(&r, 64);
    CHECK_OK(ring_resize(&r, 8));
    put(&r, 1, "abcdefg", RING_NO_FLOOR);
    put(&r, 2, "hij", RING_NO_FLOOR);
    CHECK_OK(ring_resize(&r, 32));
    CHECK_STR(dump(&r, 2, out), "1:cdefg 2:hij ");
    CHECK_OK(ring_resize(&r, 5));
    CHECK_EQ(r.head, 5);
    CHECK_STR(dump(&r, 5, out), "1:fg 2:hij ");
    CHECK_OK(ring_resize(&r, 0));
    CHECK_EQ(r.head, 10);
    CHECK_EQ(r.tail, 10);
    CHECK_EQ(ring_memory(&r), 0);
}

TEST(a_process_that_alternates_streams_byte_by_byte_cannot_grow_the_marks)
{
    _cleanup_(ring_done) struct ring r;
    ring_init(&r, 1024);
    CHECK_OK(ring_resize(&r, 1024));
    for (int i = 0; i < 20000; i++)
        put(&r, 1 + i % 2, "x", RING_NO_FLOOR);
    CHECK_EQ(r.tail, 20000);
    CHECK(r.tail - r.head >= 31);
    CHECK(r.marks_cap <= 128);
    /* The marks being full holds a writer back like missing bytes do. */
    CHECK_EQ(ring_room(&r, 1, r.head), 0);
    CHECK(ring_room(&r, 2, r.head) > 0);
}
