#include <pthread.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "init/file/rig.h"

#define OTHER "65534:65534"

struct line {
    enum wire_file_type type;
    const char *path, *link;
    uint64_t mode;
    const char *bytes;
};

/* The name of the failure, "" if there was none. */
static const char *grow(const char *user, const char *top, uint64_t flags, const struct line *lines,
                        size_t n)
{
    struct rig r;
    static char what[64];
    rig_ask(&r, WIRE_FILE_TREE_IN, user, top);
    rig_put(&r, WIRE_T_FLAGS, flags);
    rig_go(&r);
    for (size_t i = 0; i < n; i++)
        (void)rig_send_entry(&r, lines[i].type, lines[i].path, lines[i].link, lines[i].mode,
                             lines[i].bytes);
    (void)wire_send(r.fd, WIRE_END, NULL);
    (void)rig_finish(&r);
    rig_done(&r);
    (void)snprintf(what, sizeof(what), "%s", r.what);
    return what;
}

TEST(a_tree_that_came_in_goes_out_the_same)
{
    static const struct line lines[] = {
        { WIRE_DIRECTORY, "./d/", NULL, 0555, NULL },
        { WIRE_REGULAR, "d/f", NULL, 0640, "hello" },
        { WIRE_SYMLINK, "d/s", "f", 0777, NULL },
        { WIRE_HARDLINK, "d/h", "d/f", 0, NULL },
        { WIRE_FIFO, "d/p", NULL, 0600, NULL },
        { WIRE_REGULAR, "without/parents", NULL, 04755, "x" },
    };
    struct rig r;
    struct stat a, b;
    rig_enter();
    CHECK_STR(grow(OTHER, rig_path("top"), 0, lines, ARRAY_LEN(lines)), "");
    CHECK_STR(rig_text("top/d/f"), "hello");
    CHECK_EQ(rig_mode("top/d"), 0555);
    CHECK_EQ(rig_mode("top/d/f"), 0640);
    CHECK_EQ(rig_mode("top/without/parents"), 0755); /* not his owner's rights any more */
    CHECK_OK(stat(rig_path("top/d/f"), &a));
    CHECK_OK(stat(rig_path("top/d/h"), &b));
    CHECK_EQ(a.st_ino, b.st_ino);
    CHECK_EQ(a.st_uid, 65534);
    rig_ask(&r, WIRE_FILE_TREE_OUT, "root", rig_path("top"));
    rig_put(&r, WIRE_T_FLAGS, WIRE_F_CONTENTS);
    rig_go(&r);
    CHECK_OK(rig_finish(&r));
    CHECK_STR(r.seen, "d d/f d/h d/p d/s without without/parents ");
    CHECK_EQ(r.bytes, 6);
    CHECK_MEM(r.data.data, "hellox", 6);
    rig_done(&r);
    rig_ask(&r, WIRE_FILE_TREE_OUT, "root", rig_path("top"));
    rig_put(&r, WIRE_T_FLAGS, WIRE_F_CONTENTS | WIRE_F_WHOLE);
    rig_go(&r);
    CHECK_OK(rig_finish(&r));
    CHECK_MEM(r.data.data, "hellohellox", 11); /* the other name of it, too */
    rig_done(&r);
    rig_ask(&r, WIRE_FILE_TREE_OUT, "root", rig_path("top/d"));
    CHECK_STR(rig_run(&r), "");
    CHECK_STR(r.seen, "d d/f d/h d/p d/s ");
    rig_leave();
}

TEST(a_tree_leads_nowhere_else)
{
    static const struct {
        struct line lines[3];
        const char *what;
    } cases[] = {
        { { { WIRE_REGULAR, "/abs", NULL, 0644, "x" } }, "invalid_archive" },
        { { { WIRE_REGULAR, "../up", NULL, 0644, "x" } }, "invalid_archive" },
        { { { WIRE_REGULAR, "a/../../up", NULL, 0644, "x" } }, "invalid_archive" },
        { { { WIRE_REGULAR, "a/..", NULL, 0644, "x" } }, "invalid_archive" },
        { { { WIRE_REGULAR, "", NULL, 0644, "x" } }, "invalid_archive" },
        { { { WIRE_REGULAR, ".", NULL, 0644, "x" } }, "invalid_archive" },
        { { { WIRE_SYMLINK, "s", "../outside", 0, NULL },
            { WIRE_REGULAR, "s/evil", NULL, 0644, "x" } },
          "invalid_archive" },
        { { { WIRE_SYMLINK, "s", "/etc", 0, NULL }, { WIRE_REGULAR, "s/evil", NULL, 0644, "x" } },
          "invalid_archive" },
        { { { WIRE_SYMLINK, "s", "../outside/victim", 0, NULL },
            { WIRE_REGULAR, "s", NULL, 0644, "x" } },
          "" }, /* the link itself is replaced */
        { { { WIRE_SYMLINK, "s", "../outside", 0, NULL },
            { WIRE_DIRECTORY, "s", NULL, 0700, NULL } },
          "" }, /* and stays where a directory comes, which changes nothing */
        { { { WIRE_HARDLINK, "h", "../outside/victim", 0, NULL } }, "invalid_archive" },
        { { { WIRE_HARDLINK, "h", "/etc/passwd", 0, NULL } }, "invalid_archive" },
        { { { WIRE_HARDLINK, "h", "none", 0, NULL } }, "invalid_archive" },
        { { { WIRE_SYMLINK, "s", "../outside", 0, NULL },
            { WIRE_HARDLINK, "h", "s/victim", 0, NULL } },
          "invalid_archive" },
        { { { WIRE_DIRECTORY, "d", NULL, 0755, NULL }, { WIRE_REGULAR, "d", NULL, 0644, "x" } },
          "is_a_directory" },
        { { { WIRE_REGULAR, "f", NULL, 0644, "x" }, { WIRE_REGULAR, "f/g", NULL, 0644, "x" } },
          "not_a_directory" },
        { { { WIRE_SOCKET, "sock", NULL, 0644, NULL } }, "not_supported" },
        { { { WIRE_SYMLINK, "s", NULL, 0644, NULL } }, "invalid_archive" },
        { { { WIRE_DIRECTORY, "d", NULL, 0755, "bytes" } }, "invalid_archive" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        rig_enter();
        CHECK_OK(mkdir(rig_path("outside"), 0755));
        rig_file("outside/victim", "untouched");
        size_t n = 0;
        while (n < 3 && cases[i].lines[n].type)
            n++;
        CHECK_STR(grow("root", rig_path("top"), WIRE_F_NUMERIC, cases[i].lines, n), cases[i].what);
        CHECK_STR(rig_text("outside/victim"), "untouched");
        CHECK_EQ(rig_mode("outside"), 0755);
        CHECK(!rig_is_there("outside/evil"));
        CHECK(!rig_is_there("up"));
        struct stat st;
        CHECK_OK(stat(rig_path("outside/victim"), &st));
        CHECK_EQ(st.st_nlink, 1);
        rig_leave();
    }
}

TEST(a_device_needs_rights)
{
    static const struct line lines[] = { { WIRE_BLOCKDEV, "disk", NULL, 0666, NULL } };
    rig_enter();
    CHECK_STR(grow(OTHER, rig_path("top"), 0, lines, 1), "not_supported");
    rig_leave();
}

TEST(zeros_take_no_room)
{
    enum { SIZE = 8 * 1024 * 1024 };
    struct rig r;
    struct stat st;
    _cleanup_free_ char *zeros = calloc(1, WIRE_BULK_MAX);
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    rig_enter();
    CHECK_OK(wire_put_u64(&b, WIRE_T_TYPE, WIRE_REGULAR));
    CHECK_OK(wire_put_str(&b, WIRE_T_PATH, "hole"));
    CHECK_OK(wire_put_u64(&b, WIRE_T_SIZE, SIZE));
    rig_ask(&r, WIRE_FILE_TREE_IN, "root", rig_path(""));
    rig_go(&r);
    CHECK_OK(wire_send(r.fd, WIRE_ENTRY, &b));
    for (size_t sent = 0; sent < SIZE; sent += WIRE_BULK_MAX)
        CHECK_OK(rig_send(&r, zeros, WIRE_BULK_MAX));
    CHECK_OK(wire_send(r.fd, WIRE_END, NULL));
    CHECK_OK(rig_finish(&r));
    rig_done(&r);
    CHECK_OK(stat(rig_path("hole"), &st));
    CHECK_EQ(st.st_size, SIZE);
    CHECK(st.st_blocks * 512 < 1024 * 1024);
    rig_leave();
}

TEST(a_tree_replaces_files_and_merges_directories)
{
    static const struct line lines[] = {
        { WIRE_DIRECTORY, "d", NULL, 0755, NULL },
        { WIRE_REGULAR, "d/new", NULL, 0600, "new" },
        { WIRE_REGULAR, "d/old", NULL, 0600, "newer" },
        { WIRE_SYMLINK, "d/file", "new", 0, NULL },
    };
    rig_enter();
    CHECK_OK(mkdir(rig_path("d"), 0700));
    rig_file("d/kept", "kept");
    rig_file("d/old", "old");
    rig_file("d/file", "gone");
    CHECK_STR(grow("root", rig_path(""), 0, lines, ARRAY_LEN(lines)), "");
    CHECK_STR(rig_text("d/kept"), "kept");
    CHECK_STR(rig_text("d/old"), "newer");
    CHECK_STR(rig_text("d/file"), "new");
    CHECK_EQ(rig_mode("d"), 0755);
    rig_leave();
}

TEST(extended_attributes_come_along_also_to_what_is_read_only)
{
    struct rig r;
    char value[8];
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    rig_enter();
    rig_file("probe", "");
    if (setxattr(rig_path("probe"), "user.a", "1", 1, 0) == 0) {
        CHECK_OK(wire_put_u64(&b, WIRE_T_TYPE, WIRE_REGULAR));
        CHECK_OK(wire_put_str(&b, WIRE_T_PATH, "f"));
        CHECK_OK(wire_put_u64(&b, WIRE_T_MODE, 0444));
        CHECK_OK(wire_put(&b, WIRE_T_XATTR, "user.a\0yes", 10));
        CHECK_OK(wire_put(&b, WIRE_T_XATTR, "trusted.overlay.opaque\0y", 24));
        rig_ask(&r, WIRE_FILE_TREE_IN, OTHER, rig_path("top"));
        rig_go(&r);
        CHECK_OK(wire_send(r.fd, WIRE_ENTRY, &b));
        CHECK_OK(wire_send(r.fd, WIRE_END, NULL));
        CHECK_OK(rig_finish(&r));
        rig_done(&r);
        CHECK_EQ(getxattr(rig_path("top/f"), "user.a", value, sizeof(value)), 3);
        CHECK(getxattr(rig_path("top/f"), "trusted.overlay.opaque", value, sizeof(value)) < 0);
    }
    rig_leave();
}

TEST(half_a_file_is_none)
{
    struct rig r;
    rig_enter();
    rig_ask(&r, WIRE_FILE_TREE_IN, "root", rig_path("top"));
    rig_go(&r);
    CHECK_OK(rig_send_entry(&r, WIRE_REGULAR, "whole", NULL, 0644, "yes"));
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    CHECK_OK(wire_put_u64(&b, WIRE_T_TYPE, WIRE_REGULAR));
    CHECK_OK(wire_put_str(&b, WIRE_T_PATH, "half"));
    CHECK_OK(wire_put_u64(&b, WIRE_T_SIZE, 10));
    CHECK_OK(wire_send(r.fd, WIRE_ENTRY, &b));
    CHECK_OK(rig_send(&r, "12345", 5));
    rig_done(&r);
    CHECK_STR(rig_text("top/whole"), "yes");
    CHECK(!rig_is_there("top/half"));
    rig_leave();
}

/* ---- someone swaps a directory for a link out of it while we work ---- */

static bool swapping;

static int swap_dir = -1; /* the test's directory */

static void *swap_on(void *arg)
{
    (void)arg;
    while (__atomic_load_n(&swapping, __ATOMIC_RELAXED))
        (void)syscall(SYS_renameat2, swap_dir, "top/d", swap_dir, "link", 2);
    return NULL;
}

static pthread_t swap_begin(void)
{
    pthread_t thread;
    CHECK_OK(mkdir(rig_path("outside"), 0755));
    CHECK_OK(mkdir(rig_path("outside/d"), 0777));
    rig_file("outside/victim", "untouched");
    rig_file("outside/d/victim", "untouched");
    CHECK_OK(mkdir(rig_path("top"), 0777));
    CHECK_OK(mkdir(rig_path("top/d"), 0777));
    CHECK_OK(symlink("../outside", rig_path("link")));
    swap_dir = open(rig_top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(swap_dir >= 0);
    swapping = true;
    CHECK_EQ(pthread_create(&thread, NULL, swap_on, NULL), 0);
    return thread;
}

static void swap_end(pthread_t thread)
{
    __atomic_store_n(&swapping, false, __ATOMIC_RELAXED);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    (void)close(swap_dir);
    CHECK_STR(rig_text("outside/victim"), "untouched");
    CHECK_STR(rig_text("outside/d/victim"), "untouched");
    CHECK(!rig_is_there("outside/evil"));
    CHECK(!rig_is_there("outside/x/evil"));
    CHECK_EQ(rig_mode("outside"), 0755);
}

TEST(a_tree_that_comes_in_does_not_follow_a_swapped_directory)
{
    static const struct line lines[] = {
        { WIRE_DIRECTORY, "d", NULL, 0711, NULL },
        { WIRE_REGULAR, "d/evil", NULL, 0644, "x" },
        { WIRE_REGULAR, "d/victim", NULL, 0644, "x" },
        { WIRE_REGULAR, "d/x/evil", NULL, 0644, "x" },
        { WIRE_SYMLINK, "d/evil", "victim", 0, NULL },
    };
    rig_enter();
    pthread_t thread = swap_begin();
    for (int i = 0; i < 60; i++)
        (void)grow("root", rig_path("top"), 0, lines, ARRAY_LEN(lines));
    swap_end(thread);
    rig_leave();
}

TEST(a_removal_does_not_follow_a_swapped_directory)
{
    rig_enter();
    pthread_t thread = swap_begin();
    for (int i = 0; i < 60; i++) {
        struct rig r;
        rig_ask(&r, WIRE_FILE_REMOVE, "root", rig_path("top"));
        rig_put(&r, WIRE_T_FLAGS, WIRE_F_RECURSIVE);
        (void)rig_run(&r);
        (void)mkdir(rig_path("top"), 0777);
        (void)mkdir(rig_path("top/d"), 0777);
        (void)mkdir(rig_path("top/d/d"), 0777);
    }
    swap_end(thread);
    rig_leave();
}

TEST(a_copy_does_not_follow_a_swapped_directory)
{
    rig_enter();
    pthread_t thread = swap_begin();
    CHECK_OK(mkdir(rig_path("src"), 0777));
    CHECK_OK(mkdir(rig_path("src/d"), 0777));
    rig_file("src/d/evil", "x");
    rig_file("src/d/victim", "x");
    for (int i = 0; i < 60; i++) {
        struct rig r;
        rig_ask(&r, WIRE_FILE_COPY, "root", rig_path("src"));
        rig_text_field(&r, WIRE_T_TO, rig_path("top"));
        rig_put(&r, WIRE_T_FLAGS, WIRE_F_RECURSIVE);
        (void)rig_run(&r);
        rig_ask(&r, WIRE_FILE_CHMOD, "root", rig_path("top"));
        rig_put(&r, WIRE_T_MODE, 0711);
        rig_put(&r, WIRE_T_FLAGS, WIRE_F_RECURSIVE);
        (void)rig_run(&r);
    }
    swap_end(thread);
    rig_leave();
}

TEST(a_file_that_shrinks_keeps_the_length_it_was_told_with)
{
    enum { SIZE = 4 * 1024 * 1024 };
    struct rig r;
    rig_enter();
    rig_file("a", "");
    CHECK_OK(truncate(rig_path("a"), SIZE));
    rig_ask(&r, WIRE_FILE_TREE_OUT, "root", rig_path("a"));
    rig_go(&r);
    CHECK_OK(rig_next(&r)); /* the ENTRY is there, and the bytes wait for us */
    CHECK_EQ(rig_number(&r, WIRE_T_SIZE), SIZE);
    CHECK_OK(truncate(rig_path("a"), 0));
    CHECK_OK(rig_finish(&r));
    CHECK_EQ(r.data.len, SIZE);
    CHECK_STR(r.skipped, "a:file_changed ");
    rig_done(&r);
    rig_leave();
}
