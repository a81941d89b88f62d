#include "core/file_watch.h"

#include <errno.h>

#include "core/fake_init.h"

static void send_change(int fd, enum wire_change change, const char *path, uint64_t cookie)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    (void)wire_put_u64(&b, WIRE_T_CHANGE, change);
    (void)wire_put_str(&b, WIRE_T_PATH, path);
    (void)wire_put_u64(&b, WIRE_T_COOKIE, cookie);
    if (change != WIRE_REMOVED && change != WIRE_RENAMED_FROM)
        (void)wire_put_u64(&b, WIRE_T_TYPE, WIRE_REGULAR);
    (void)wire_send(fd, WIRE_CHANGE, &b);
}

static void part_changes(int fd, struct stage *st)
{
    (void)wire_send(fd, WIRE_OK, NULL);
    send_change(fd, WIRE_CREATED, "/w/a", 0);
    send_change(fd, WIRE_RENAMED_FROM, "/w/a", 7); /* both halves */
    send_change(fd, WIRE_RENAMED_TO, "/w/b", 7);
    send_change(fd, WIRE_RENAMED_FROM, "/w/b", 8); /* it left */
    send_change(fd, WIRE_WRITTEN, "/w/c", 0);
    send_change(fd, WIRE_RENAMED_TO, "/w/d", 9);    /* it came */
    send_change(fd, WIRE_RENAMED_FROM, "/w/d", 10); /* two that have nothing in common */
    send_change(fd, WIRE_RENAMED_TO, "/w/e", 11);
    send_change(fd, WIRE_RENAMED_FROM, "/w/e", 12); /* the last thing it says */
}

TEST(halves_of_a_rename_are_told_as_what_happened)
{
    static const struct {
        enum file_change_type type;
        const char *path, *to;
    } want[] = {
        { FILE_CREATED, "/w/a", NULL }, { FILE_RENAMED, "/w/a", "/w/b" },
        { FILE_REMOVED, "/w/b", NULL }, { FILE_WRITTEN, "/w/c", NULL },
        { FILE_CREATED, "/w/d", NULL }, { FILE_REMOVED, "/w/d", NULL },
        { FILE_CREATED, "/w/e", NULL }, { FILE_REMOVED, "/w/e", NULL },
    };
    _cleanup_(stage_close) struct stage st;
    _cleanup_(file_watch_freep) struct file_watch *w = NULL;
    struct err err = ERR_INIT;

    stage_open(&st, part_changes);
    CHECK_OK(file_watch_open(&st.core, &st.s, NULL, "/w", WIRE_F_RECURSIVE, -1, &w, NULL));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        _cleanup_(file_change_done) struct file_change c = { 0 };
        CHECK_EQ(file_watch_next(w, 5000, -1, &c, NULL), 1);
        CHECK_EQ(c.type, want[i].type);
        CHECK_STR(c.path, want[i].path);
        CHECK((c.to == NULL) == (want[i].to == NULL));
        if (c.to)
            CHECK_STR(c.to, want[i].to);
        CHECK((c.entry.path == NULL) == (c.type == FILE_REMOVED));
    }
    struct file_change none;
    CHECK_EQ(file_watch_next(w, 5000, -1, &none, &err), -ECONNRESET);
}

static void part_refuse(int fd, struct stage *st)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(256);
    (void)wire_put_str(&b, WIRE_T_WHAT, "file_not_found");
    (void)wire_send(fd, WIRE_ERROR, &b);
}

TEST(a_watch_of_nothing_is_refused)
{
    _cleanup_(stage_close) struct stage st;
    struct file_watch *w = NULL;
    struct err err = ERR_INIT;

    stage_open(&st, part_refuse);
    CHECK_EQ(file_watch_open(&st.core, &st.s, NULL, "/w", 0, -1, &w, &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "file_not_found");
}
