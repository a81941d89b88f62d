#include <signal.h>
#include <sys/resource.h>

#include "init/file/rig.h"

#define OTHER "65534:65534" /* someone who is not root */

TEST(a_file_is_read_whole_and_in_part)
{
    struct rig r;
    rig_enter();
    rig_file("a", "0123456789");
    rig_ask(&r, WIRE_FILE_READ, "root", rig_path("a"));
    CHECK_STR(rig_run(&r), "");
    rig_ask(&r, WIRE_FILE_READ, "root", rig_path("a"));
    rig_put(&r, WIRE_T_OFFSET, 3);
    rig_put(&r, WIRE_T_LENGTH, 4);
    rig_go(&r);
    CHECK_OK(rig_finish(&r));
    CHECK_EQ(r.data.len, 4);
    CHECK_MEM(r.data.data, "3456", 4);
    rig_done(&r);
    rig_ask(&r, WIRE_FILE_READ, "root", rig_path("a"));
    rig_put(&r, WIRE_T_OFFSET, 10);
    CHECK_STR(rig_run(&r), "range_not_satisfiable");
    rig_leave();
}

TEST(what_is_not_a_file_is_not_waited_for)
{
    static const struct {
        const char *path, *what;
    } cases[] = {
        { "fifo", "not_a_file" },     { "dir", "is_a_directory" },
        { "none", "file_not_found" }, { "loop", "too_many_links" },
        { "a/b", "not_a_directory" }, { "secret", "permission_denied" },
    };
    rig_enter();
    CHECK_OK(mkfifo(rig_path("fifo"), 0666));
    CHECK_OK(mkdir(rig_path("dir"), 0755));
    CHECK_OK(symlink("loop", rig_path("loop")));
    rig_file("a", "x");
    rig_file("secret", "x");
    CHECK_OK(chmod(rig_path("secret"), 0600));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct rig r;
        rig_ask(&r, WIRE_FILE_READ, OTHER, rig_path(cases[i].path));
        CHECK_STR(rig_run(&r), cases[i].what);
    }
    CHECK_STR(rig_write(OTHER, rig_path("fifo"), "x"), "not_a_file");
    CHECK_STR(rig_write(OTHER, rig_path("dir"), "x"), "is_a_directory");
    CHECK_STR(rig_write(OTHER, "/", "x"), "is_a_directory");
    CHECK_STR(rig_write(OTHER, rig_path("secret"), "x"), "permission_denied");
    rig_leave();
}

TEST(a_made_up_file_has_the_length_it_is_read_with)
{
    struct rig r;
    rig_ask(&r, WIRE_FILE_READ, "root", "/proc/self/status");
    rig_go(&r);
    CHECK_OK(rig_finish(&r));
    CHECK(r.data.len > 100);
    CHECK_MEM(r.data.data, "Name:", 5);
    rig_done(&r);
}

TEST(a_user_that_is_not_there_is_told)
{
    struct rig r;
    rig_ask(&r, WIRE_FILE_STAT, "nobody-of-this-name", "/");
    CHECK_STR(rig_run(&r), "user_not_found");
}

TEST(a_write_makes_parents_and_keeps_what_the_old_file_was)
{
    struct stat st;
    rig_enter();
    CHECK_STR(rig_write(OTHER, rig_path("new/dir/f"), "one"), "");
    CHECK_STR(rig_text("new/dir/f"), "one");
    CHECK_EQ(rig_mode("new/dir/f"), 0644);
    CHECK_OK(stat(rig_path("new/dir"), &st));
    CHECK_EQ(st.st_uid, 65534);
    CHECK_OK(chmod(rig_path("new/dir/f"), 0750));
    CHECK_STR(rig_write("root", rig_path("new/dir/f"), "two"), "");
    CHECK_OK(stat(rig_path("new/dir/f"), &st));
    CHECK_EQ(st.st_uid, 65534); /* root wrote it, and it is still the user's */
    CHECK_EQ(st.st_mode & 07777, 0750);
    CHECK_STR(rig_text("new/dir/f"), "two");
    rig_leave();
}

TEST(a_write_goes_where_a_link_leads_and_keeps_the_link)
{
    struct stat st;
    rig_enter();
    rig_file("real", "old");
    CHECK_OK(symlink("real", rig_path("to_real")));
    CHECK_OK(symlink("sub/../later", rig_path("dangling")));
    CHECK_OK(mkdir(rig_path("sub"), 0777));
    CHECK_STR(rig_write("root", rig_path("to_real"), "new"), "");
    CHECK_STR(rig_text("real"), "new");
    CHECK_OK(lstat(rig_path("to_real"), &st));
    CHECK(S_ISLNK(st.st_mode));
    CHECK_STR(rig_write("root", rig_path("dangling"), "made"), "");
    CHECK_STR(rig_text("later"), "made");
    CHECK_STR(rig_write("root", rig_path("sub/../dots"), "up"), "");
    CHECK_STR(rig_text("dots"), "up");
    rig_leave();
}

TEST(a_write_that_breaks_off_leaves_nothing)
{
    struct rig r;
    rig_enter();
    rig_file("a", "old");
    rig_ask(&r, WIRE_FILE_WRITE, "root", rig_path("a"));
    rig_go(&r);
    CHECK_OK(rig_send(&r, "half", 4));
    rig_done(&r);
    CHECK_STR(rig_text("a"), "old");
    rig_ask(&r, WIRE_FILE_LIST, "root", rig_path(""));
    CHECK_STR(rig_run(&r), "");
    CHECK_STR(r.seen, "a ");
    rig_leave();
}

TEST(a_write_says_what_it_expects_to_find)
{
    struct rig r;
    rig_enter();
    rig_file("a", "old");
    rig_ask(&r, WIRE_FILE_WRITE, "root", rig_path("a"));
    rig_put(&r, WIRE_T_FLAGS, WIRE_F_EXCLUSIVE);
    CHECK_STR(rig_run(&r), "file_exists");
    rig_ask(&r, WIRE_FILE_WRITE, "root", rig_path("a"));
    rig_text_field(&r, WIRE_T_ETAG, "another");
    CHECK_STR(rig_run(&r), "precondition_failed");
    rig_ask(&r, WIRE_FILE_WRITE, "root", rig_path("none"));
    rig_text_field(&r, WIRE_T_ETAG, "*");
    CHECK_STR(rig_run(&r), "precondition_failed");

    char etag[128];
    rig_ask(&r, WIRE_FILE_STAT, "root", rig_path("a"));
    rig_go(&r);
    CHECK_OK(rig_next(&r));
    rig_string(&r, WIRE_T_ETAG, etag, sizeof(etag));
    rig_done(&r);
    rig_ask(&r, WIRE_FILE_WRITE, "root", rig_path("a"));
    rig_text_field(&r, WIRE_T_ETAG, etag);
    rig_go(&r);
    CHECK_OK(rig_send(&r, "new", 3));
    CHECK_OK(wire_send(r.fd, WIRE_END, NULL));
    CHECK_OK(rig_finish(&r));
    rig_done(&r);
    CHECK_STR(rig_text("a"), "new");
    rig_leave();
}

TEST(an_append_adds_to_the_end)
{
    rig_enter();
    rig_file("log", "one\n");
    for (int i = 0; i < 2; i++) {
        struct rig r;
        rig_ask(&r, WIRE_FILE_WRITE, "root", rig_path(i ? "fresh" : "log"));
        rig_put(&r, WIRE_T_FLAGS, WIRE_F_APPEND);
        rig_go(&r);
        CHECK_OK(rig_send(&r, "two\n", 4));
        CHECK_OK(wire_send(r.fd, WIRE_END, NULL));
        CHECK_OK(rig_finish(&r));
        CHECK_EQ(r.count, (uint64_t)i);
        rig_done(&r);
    }
    CHECK_STR(rig_text("log"), "one\ntwo\n");
    CHECK_STR(rig_text("fresh"), "two\n");
    rig_leave();
}

/* Frames below and above what goes through a pipe, in an order that leaves some of each buffered. */
TEST(frames_of_every_size_arrive_in_order)
{
    static const size_t sizes[] = { 1,     5, 16383,  16384, 16385,  7, WIRE_BULK_MAX, 4096, 100000,
                                    65536, 3, 262143, 20000, 131072, 1 };
    static char bytes[2 * 1024 * 1024], seen[sizeof(bytes)];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    rig_enter();
    for (int i = 0; i < 2; i++) { /* a file that is appended to takes no pages */
        struct rig r;
        size_t at = 0;
        rig_ask(&r, WIRE_FILE_WRITE, "root", rig_path("a"));
        rig_put(&r, WIRE_T_FLAGS, i ? WIRE_F_APPEND : 0);
        rig_go(&r);
        for (size_t k = 0; k < ARRAY_LEN(sizes); at += sizes[k++])
            CHECK_OK(rig_send(&r, bytes + at, sizes[k]));
        CHECK_OK(wire_send(r.fd, WIRE_END, NULL));
        CHECK_OK(rig_finish(&r));
        rig_done(&r);
        int fd = open(rig_path("a"), O_RDONLY | O_CLOEXEC);
        CHECK_EQ(pread(fd, seen, sizeof(seen), i ? (off_t)at : 0), (ssize_t)at);
        CHECK_EQ(memcmp(seen, bytes, at), 0);
        (void)close(fd);
    }
    rig_leave();
}

TEST(a_file_that_takes_no_more_bytes_says_so)
{
    static const char bytes[WIRE_BULK_MAX];
    struct rlimit before, small = { 300000, 300000 };
    struct rig r;
    rig_enter();
    rig_file("a", "old");
    CHECK_OK(getrlimit(RLIMIT_FSIZE, &before));
    small.rlim_max = before.rlim_max;
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    CHECK_OK(setrlimit(RLIMIT_FSIZE, &small));
    rig_ask(&r, WIRE_FILE_WRITE, "root", rig_path("a"));
    rig_go(&r);
    CHECK_OK(setrlimit(RLIMIT_FSIZE, &before));
    for (int i = 0; i < 3; i++)
        if (rig_send(&r, bytes, sizeof(bytes)) < 0)
            break; /* it has refused and is gone */
    (void)wire_send(r.fd, WIRE_END, NULL);
    CHECK_EQ(rig_finish(&r), -1);
    CHECK_STR(r.what, "file_too_large");
    rig_done(&r);
    CHECK_STR(rig_text("a"), "old");
    rig_leave();
}

TEST(a_file_that_may_be_written_is_written_where_its_directory_may_not)
{
    rig_enter();
    CHECK_OK(mkdir(rig_path("d"), 0755));
    rig_file("d/mine", "old");
    CHECK_OK(chown(rig_path("d/mine"), 65534, 65534));
    CHECK_STR(rig_write(OTHER, rig_path("d/mine"), "new words"), "");
    CHECK_STR(rig_text("d/mine"), "new words");
    CHECK_STR(rig_write(OTHER, rig_path("d/none"), "x"), "permission_denied");
    rig_leave();
}

TEST(a_list_is_sorted_paged_and_as_deep_as_asked)
{
    struct rig r;
    char after[600] = "";
    char all[RIG_SEEN_MAX] = "";
    rig_enter();
    CHECK_OK(mkdir(rig_path("b"), 0755));
    CHECK_OK(mkdir(rig_path("b/d"), 0755));
    rig_file("b/d/deep", "");
    rig_file("b/z", "");
    rig_file("c", "");
    rig_file("a", "");
    rig_file("b.x", "");
    rig_ask(&r, WIRE_FILE_LIST, "root", rig_path(""));
    CHECK_STR(rig_run(&r), "");
    CHECK_STR(r.seen, "a b b.x c ");
    rig_ask(&r, WIRE_FILE_LIST, "root", rig_path(""));
    rig_put(&r, WIRE_T_DEPTH, 2);
    CHECK_STR(rig_run(&r), "");
    CHECK_STR(r.seen, "a b b/d b/z b.x c ");
    for (int page = 0; page < 10; page++) {
        rig_ask(&r, WIRE_FILE_LIST, "root", rig_path(""));
        rig_put(&r, WIRE_T_DEPTH, 9);
        rig_put(&r, WIRE_T_LIMIT, 2);
        if (*after)
            rig_text_field(&r, WIRE_T_AFTER, after);
        rig_go(&r);
        CHECK_OK(rig_finish(&r));
        size_t n = strlen(all);
        (void)snprintf(all + n, sizeof(all) - n, "%s", r.seen);
        rig_string(&r, WIRE_T_AFTER, after, sizeof(after));
        rig_done(&r);
        if (!*after)
            break;
    }
    CHECK_STR(all, "a b b/d b/d/deep b/z b.x c ");
    rig_ask(&r, WIRE_FILE_LIST, "root", rig_path("a"));
    CHECK_STR(rig_run(&r), "not_a_directory");
    rig_leave();
}

TEST(a_directory_is_made_with_its_parents)
{
    struct rig r;
    rig_enter();
    rig_ask(&r, WIRE_FILE_MKDIR, "root", rig_path("a/b/c"));
    rig_put(&r, WIRE_T_FLAGS, WIRE_F_NO_PARENTS);
    CHECK_STR(rig_run(&r), "file_not_found");
    for (uint64_t i = 0; i < 2; i++) {
        rig_ask(&r, WIRE_FILE_MKDIR, "root", rig_path("a/b/c"));
        rig_put(&r, WIRE_T_MODE, 0777);
        CHECK_STR(rig_run(&r), "");
        CHECK_EQ(r.count, 1 - i);
    }
    CHECK_EQ(rig_mode("a/b/c"), 0777);
    rig_ask(&r, WIRE_FILE_MKDIR, "root", rig_path("a"));
    rig_put(&r, WIRE_T_FLAGS, WIRE_F_EXCLUSIVE);
    CHECK_STR(rig_run(&r), "file_exists");
    rig_leave();
}

TEST(a_removal_says_what_it_does_not_remove)
{
    struct rig r;
    rig_enter();
    CHECK_OK(mkdir(rig_path("d"), 0755));
    CHECK_OK(mkdir(rig_path("d/e"), 0755));
    rig_file("d/e/f", "x");
    rig_file("keep", "kept");
    CHECK_OK(symlink("../keep", rig_path("d/link")));
    rig_ask(&r, WIRE_FILE_REMOVE, "root", rig_path("d"));
    CHECK_STR(rig_run(&r), "directory_not_empty");
    rig_ask(&r, WIRE_FILE_REMOVE, OTHER, rig_path("d"));
    rig_put(&r, WIRE_T_FLAGS, WIRE_F_RECURSIVE);
    CHECK_STR(rig_run(&r), "permission_denied");
    rig_ask(&r, WIRE_FILE_REMOVE, "root", rig_path("d"));
    rig_put(&r, WIRE_T_FLAGS, WIRE_F_RECURSIVE);
    CHECK_STR(rig_run(&r), "");
    CHECK(!rig_is_there("d"));
    CHECK_STR(rig_text("keep"), "kept");
    rig_ask(&r, WIRE_FILE_REMOVE, "root", rig_path("d"));
    CHECK_STR(rig_run(&r), "file_not_found");
    rig_ask(&r, WIRE_FILE_REMOVE, "root", rig_path("d"));
    rig_put(&r, WIRE_T_FLAGS, WIRE_F_FORCE);
    CHECK_STR(rig_run(&r), "");
    rig_ask(&r, WIRE_FILE_REMOVE, "root", "/");
    rig_put(&r, WIRE_T_FLAGS, WIRE_F_RECURSIVE);
    CHECK_STR(rig_run(&r), "file_busy");
    rig_leave();
}

TEST(a_large_directory_is_listed_by_pages_and_removed)
{
    enum { MANY = 5000, PAGE = 700 };
    char name[64], after[600] = "", last[600] = "";
    size_t seen = 0;
    struct rig r;
    rig_enter();
    CHECK_OK(mkdir(rig_path("d"), 0755));
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof(name), "d/%d", i * 7919 % 100003);
        rig_file(name, "");
    }
    do {
        rig_ask(&r, WIRE_FILE_LIST, "root", rig_path("d"));
        rig_put(&r, WIRE_T_LIMIT, PAGE);
        if (*after)
            rig_text_field(&r, WIRE_T_AFTER, after);
        rig_go(&r);
        while (rig_next(&r) == 0 && r.h.type == WIRE_ENTRY) {
            char path[600];
            rig_string(&r, WIRE_T_PATH, path, sizeof(path));
            CHECK(strcmp(last, path) < 0);
            (void)snprintf(last, sizeof(last), "%s", path);
            seen++;
        }
        CHECK_EQ(r.h.type, WIRE_OK);
        rig_string(&r, WIRE_T_AFTER, after, sizeof(after));
        rig_done(&r);
    } while (*after);
    CHECK_EQ(seen, MANY);
    rig_ask(&r, WIRE_FILE_REMOVE, "root", rig_path("d"));
    rig_put(&r, WIRE_T_FLAGS, WIRE_F_RECURSIVE);
    CHECK_STR(rig_run(&r), "");
    CHECK(!rig_is_there("d"));
    rig_leave();
}

TEST(a_deep_tree_is_no_trouble_and_one_too_deep_is_said_to_be)
{
    struct rig r;
    rig_enter();
    int fd = open(rig_top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int depth = 0; fd >= 0 && depth < 2100; depth++) { /* far longer than any path may be */
        CHECK_OK(mkdirat(fd, "deeper", 0777));
        int next = openat(fd, "deeper", O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)close(fd);
        fd = next;
    }
    CHECK(fd >= 0);
    (void)close(fd);
    rig_ask(&r, WIRE_FILE_USAGE, "root", rig_path("deeper"));
    rig_go(&r);
    (void)rig_finish(&r);
    CHECK_EQ(r.h.type, WIRE_OK);
    CHECK(strstr(r.skipped, ":name_too_long ") != NULL);
    rig_done(&r);
    rig_ask(&r, WIRE_FILE_REMOVE, "root", rig_path("deeper"));
    rig_put(&r, WIRE_T_FLAGS, WIRE_F_RECURSIVE);
    CHECK_STR(rig_run(&r), "name_too_long");
    rig_leave();
}
