#include <signal.h>

#include "init/file/rig.h"

static const char *const names[] = {
    "?", "create", "write", "remove", "from", "to", "chmod", "over"
};

static void watch(struct rig *r, const char *name, uint64_t flags)
{
    rig_ask(r, WIRE_FILE_WATCH, "root", rig_path(name));
    rig_put(r, WIRE_T_FLAGS, flags);
    rig_go(r);
    CHECK_OK(rig_next(r));
    CHECK_EQ(r->h.type, WIRE_OK);
}

/* Changes up to the one that is named last, as "what:path ". The kernel tells a file's emptying and
 * its filling apart or together, as they are read: one that comes again at once counts once. */
static const char *changes(struct rig *r, const char *last)
{
    static char all[4096];
    char before[700] = "";
    all[0] = '\0';
    for (;;) {
        char path[600], one[700];
        if (rig_next(r) < 0 || r->h.type != WIRE_CHANGE)
            return "<ended>";
        rig_string(r, WIRE_T_PATH, path, sizeof(path));
        uint64_t what = rig_number(r, WIRE_T_CHANGE);
        size_t top_n = strlen(rig_top), n = strlen(all);
        (void)snprintf(one, sizeof(one), "%s:%s", names[what],
                       path[top_n] ? path + top_n + 1 : path + top_n);
        if (strcmp(one, before) != 0)
            (void)snprintf(all + n, sizeof(all) - n, "%s ", one);
        memcpy(before, one, sizeof(before));
        if (strcmp(one, last) == 0)
            return all;
    }
}

TEST(changes_are_told_in_order)
{
    struct rig r;
    rig_enter();
    rig_file("old", "x");
    watch(&r, "", 0);
    rig_file("new", "text");
    CHECK_OK(chmod(rig_path("new"), 0600));
    CHECK_OK(rename(rig_path("old"), rig_path("other")));
    CHECK_OK(unlink(rig_path("new")));
    CHECK_STR(changes(&r, "remove:new"),
              "create:new write:new chmod:new from:old to:other remove:new ");
    CHECK_STR(rig_write("root", rig_path("other"), "by the API"), "");
    CHECK_STR(changes(&r, "write:other"), "write:other "); /* and nothing of how that is done */
    rig_done(&r);
    rig_leave();
}

TEST(a_write_by_the_api_is_told_as_e2b_tells_it)
{
    struct rig r;
    rig_enter();
    watch(&r, "", WIRE_F_FOR_USER);
    CHECK_STR(rig_write("root", rig_path("new"), "text"), "");
    CHECK_STR(changes(&r, "write:new"), "create:new chmod:new write:new ");
    CHECK_STR(rig_write("root", rig_path("new"), "again"), "");
    CHECK_STR(changes(&r, "write:new"), "chmod:new write:new ");
    CHECK_STR(rig_write("root", rig_path("empty"), ""), "");
    CHECK_STR(changes(&r, "chmod:empty"), "create:empty chmod:empty ");
    rig_file("old", ""); /* and of others as the kernel tells it */
    CHECK_OK(link(rig_path("old"), rig_path("other")));
    CHECK_OK(rename(rig_path("other"), rig_path("third")));
    CHECK_OK(unlink(rig_path("old")));
    CHECK_STR(changes(&r, "remove:old"), "create:old create:other from:other to:third remove:old ");
    rig_done(&r);
    rig_leave();
}

TEST(new_directories_are_watched_and_what_was_in_them_is_told)
{
    struct rig r;
    rig_enter();
    CHECK_OK(mkdir(rig_path("top"), 0755));
    CHECK_OK(mkdir(rig_path("full"), 0755));
    CHECK_OK(mkdir(rig_path("full/in"), 0755));
    rig_file("full/in/f", "x");
    watch(&r, "top", WIRE_F_RECURSIVE);
    CHECK_OK(rename(rig_path("full"), rig_path("top/full")));
    CHECK_STR(changes(&r, "write:top/full/in/f"),
              "to:top/full create:top/full/in create:top/full/in/f write:top/full/in/f ");
    CHECK_OK(unlink(rig_path("top/full/in/f")));
    CHECK_STR(changes(&r, "remove:top/full/in/f"), "remove:top/full/in/f ");
    /* under another name it goes on */
    CHECK_OK(rename(rig_path("top/full"), rig_path("top/moved")));
    CHECK_STR(changes(&r, "to:top/moved"), "from:top/full to:top/moved ");
    rig_file("top/moved/in/g", "");
    CHECK_STR(changes(&r, "create:top/moved/in/g"), "create:top/moved/in/g ");
    /* what left is not told of any more */
    CHECK_OK(rename(rig_path("top/moved"), rig_path("left")));
    CHECK_STR(changes(&r, "from:top/moved"), "from:top/moved ");
    for (int i = 0; i < 200; i++) { /* races with our own making of them: each is told once */
        char name[64], deep[96];
        (void)snprintf(name, sizeof(name), "top/d%d", i);
        (void)snprintf(deep, sizeof(deep), "create:top/d%d/e/f", i);
        CHECK_OK(mkdir(rig_path(name), 0755));
        (void)snprintf(name, sizeof(name), "top/d%d/e", i);
        CHECK_OK(mkdir(rig_path(name), 0755));
        (void)snprintf(name, sizeof(name), "top/d%d/e/f", i);
        rig_file(name, "");
        char want[256];
        (void)snprintf(want, sizeof(want), "create:top/d%d create:top/d%d/e create:top/d%d/e/f ", i,
                       i, i);
        CHECK_STR(changes(&r, deep), want);
    }
    rig_done(&r);
    rig_leave();
}

TEST(the_end_of_what_is_watched_is_the_end)
{
    struct rig r;
    rig_enter();
    CHECK_OK(mkdir(rig_path("d"), 0755));
    watch(&r, "d", 0);
    CHECK_OK(rmdir(rig_path("d")));
    CHECK_STR(changes(&r, "remove:d"), "remove:d ");
    CHECK_EQ(rig_finish(&r), -1);
    CHECK_STR(r.what, "file_not_found");
    rig_done(&r);
    rig_ask(&r, WIRE_FILE_WATCH, "root", rig_path("none"));
    CHECK_STR(rig_run(&r), "file_not_found");
    rig_leave();
}

TEST(a_lone_file_is_watched_through_its_replacement)
{
    struct rig r;
    rig_enter();
    rig_file("f", "1");
    rig_file("g", "2");
    watch(&r, "f", 0);
    rig_file("g", "3");
    CHECK_OK(rename(rig_path("g"), rig_path("f")));
    CHECK_STR(changes(&r, "to:f"), "to:f ");
    CHECK_STR(rig_write("root", rig_path("f"), "by the API"), "");
    CHECK_STR(changes(&r, "write:f"), "write:f ");
    CHECK_OK(unlink(rig_path("f")));
    CHECK_STR(changes(&r, "remove:f"), "remove:f ");
    rig_done(&r);
    rig_leave();
}

TEST(what_the_kernel_dropped_is_said_and_new_directories_are_found_all_the_same)
{
    struct rig r;
    int limit = 0;
    FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
    CHECK(f != NULL && fscanf(f, "%d", &limit) == 1);
    (void)fclose(f);
    rig_enter();
    rig_file("a", "");
    rig_file("b", "");
    CHECK_OK(mkdir(rig_path("top"), 0755));
    watch(&r, "top", WIRE_F_RECURSIVE);
    CHECK_OK(kill(r.pid, SIGSTOP));            /* it hears nothing while the queue runs over */
    for (int i = 0; i <= limit / 2 + 1; i++) { /* two events each, none like the one before it */
        CHECK_OK(link(rig_path(i % 2 ? "a" : "b"), rig_path("top/x")));
        CHECK_OK(unlink(rig_path("top/x")));
    }
    CHECK_OK(mkdir(rig_path("top/late"), 0755));
    CHECK_OK(kill(r.pid, SIGCONT));
    uint64_t what = 0;
    while (what != WIRE_OVERFLOW) {
        CHECK_OK(rig_next(&r));
        what = rig_number(&r, WIRE_T_CHANGE);
    }
    /* It looks again before it hears more, so this is told if the directory was found. */
    rig_file("top/late/f", "");
    CHECK_STR(changes(&r, "create:top/late/f"), "create:top/late/f ");
    rig_done(&r);
    rig_leave();
}
