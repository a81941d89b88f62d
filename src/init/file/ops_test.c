#include <sys/xattr.h>

#include "init/file/rig.h"

#define OTHER "65534:65534"

static const char *run_to(enum wire_file_op op, const char *from, const char *to, uint64_t flags)
{
    struct rig r;
    rig_ask(&r, op, "root", rig_path(from));
    rig_text_field(&r, WIRE_T_TO, rig_path(to));
    rig_put(&r, WIRE_T_FLAGS, flags);
    return rig_run(&r);
}

/* a/ { f (0640, hello), s -> f, e/ { deep } } */
static void plant(void)
{
    CHECK_OK(mkdir(rig_path("a"), 0750));
    CHECK_OK(mkdir(rig_path("a/e"), 0755));
    rig_file("a/f", "hello");
    CHECK_OK(chmod(rig_path("a/f"), 0640));
    CHECK_OK(symlink("f", rig_path("a/s")));
    rig_file("a/e/deep", "deep");
}

TEST(a_copy_is_like_what_it_is_a_copy_of)
{
    char value[16] = "";
    rig_enter();
    plant();
    bool xattrs = setxattr(rig_path("a/f"), "user.note", "yes", 3, 0) == 0;
    CHECK_STR(run_to(WIRE_FILE_COPY, "a", "b", 0), "is_a_directory");
    CHECK_STR(run_to(WIRE_FILE_COPY, "a", "b", WIRE_F_RECURSIVE), "");
    CHECK_STR(rig_text("b/s"), "hello");
    CHECK_STR(rig_text("b/e/deep"), "deep");
    CHECK_EQ(rig_mode("b"), 0750);
    CHECK_EQ(rig_mode("b/f"), 0640);
    CHECK(readlink(rig_path("b/s"), value, sizeof(value)) == 1);
    if (xattrs)
        CHECK_EQ(getxattr(rig_path("b/f"), "user.note", value, sizeof(value)), 3);
    /* once more over it: merged, and one name more stays */
    rig_file("b/more", "more");
    CHECK_STR(run_to(WIRE_FILE_COPY, "a", "b", WIRE_F_RECURSIVE), "");
    CHECK_STR(rig_text("b/more"), "more");
    CHECK_STR(run_to(WIRE_FILE_COPY, "a", "b", WIRE_F_RECURSIVE | WIRE_F_EXCLUSIVE), "file_exists");
    CHECK_STR(run_to(WIRE_FILE_COPY, "a/f", "new/dir/f", 0), "");
    CHECK_STR(rig_text("new/dir/f"), "hello");
    CHECK_STR(run_to(WIRE_FILE_COPY, "a/f", "new/dir/", 0), "");
    CHECK_STR(run_to(WIRE_FILE_COPY, "a/f", "new/dir", 0), "is_a_directory");
    CHECK_STR(run_to(WIRE_FILE_COPY, "a/none", "x", 0), "file_not_found");
    rig_leave();
}

TEST(nothing_is_copied_or_moved_into_itself)
{
    rig_enter();
    plant();
    CHECK_STR(run_to(WIRE_FILE_COPY, "a", "a/e/copy", WIRE_F_RECURSIVE), "invalid_field");
    CHECK_STR(run_to(WIRE_FILE_COPY, "a", "a/copy", WIRE_F_RECURSIVE), "invalid_field");
    CHECK_STR(run_to(WIRE_FILE_COPY, "a", "a", WIRE_F_RECURSIVE), "invalid_field");
    CHECK_STR(run_to(WIRE_FILE_COPY, "a/f", "a/f", 0), "invalid_field");
    CHECK_STR(run_to(WIRE_FILE_MOVE, "a", "a/e/a", 0), "invalid_field");
    CHECK_STR(rig_text("a/f"), "hello");
    rig_leave();
}

TEST(a_move_replaces_unless_told_not_to)
{
    rig_enter();
    plant();
    rig_file("x", "old");
    CHECK_STR(run_to(WIRE_FILE_MOVE, "a/f", "x", WIRE_F_EXCLUSIVE), "file_exists");
    CHECK_STR(run_to(WIRE_FILE_MOVE, "a/f", "x", 0), "");
    CHECK_STR(rig_text("x"), "hello");
    CHECK(!rig_is_there("a/f"));
    CHECK_STR(run_to(WIRE_FILE_MOVE, "a", "new/place", 0), "");
    CHECK_STR(rig_text("new/place/e/deep"), "deep");
    CHECK_STR(run_to(WIRE_FILE_MOVE, "x", "new/place/", 0), "");
    CHECK_STR(rig_text("new/place/x"), "hello");
    rig_leave();
}

TEST(a_move_to_another_filesystem_keeps_all_of_it)
{
    struct stat st;
    struct rig r;
    char far[64] = "/dev/shm/warren-file-XXXXXX", to[128];
    rig_enter();
    plant();
    CHECK(mkdtemp(far) != NULL);
    CHECK_OK(lchown(rig_path("a/f"), 1234, 5678));
    (void)snprintf(to, sizeof(to), "%s/a", far);
    rig_ask(&r, WIRE_FILE_MOVE, "root", rig_path("a"));
    rig_text_field(&r, WIRE_T_TO, to);
    CHECK_STR(rig_run(&r), "");
    CHECK(!rig_is_there("a"));
    (void)snprintf(to, sizeof(to), "%s/a/f", far);
    CHECK_OK(stat(to, &st));
    CHECK_EQ(st.st_uid, 1234);
    CHECK_EQ(st.st_mode & 07777, 0640);
    (void)snprintf(to, sizeof(to), "rm -rf %s", far);
    CHECK_EQ(system(to), 0);
    rig_leave();
}

TEST(modes_and_owners_change_below_but_not_through_links)
{
    struct rig r;
    struct stat st;
    rig_enter();
    plant();
    rig_file("outside", "x");
    CHECK_OK(chmod(rig_path("outside"), 0600));
    CHECK_OK(symlink("../outside", rig_path("a/out")));
    rig_ask(&r, WIRE_FILE_CHMOD, "root", rig_path("a"));
    rig_put(&r, WIRE_T_MODE, 0700);
    rig_put(&r, WIRE_T_FLAGS, WIRE_F_RECURSIVE);
    CHECK_STR(rig_run(&r), "");
    CHECK_EQ(rig_mode("a/e/deep"), 0700);
    CHECK_EQ(rig_mode("outside"), 0600);
    rig_ask(&r, WIRE_FILE_CHOWN, "root", rig_path("a"));
    rig_text_field(&r, WIRE_T_OWNER, "65534:7");
    rig_put(&r, WIRE_T_FLAGS, WIRE_F_RECURSIVE);
    CHECK_STR(rig_run(&r), "");
    CHECK_OK(stat(rig_path("a/e/deep"), &st));
    CHECK_EQ(st.st_uid, 65534);
    CHECK_EQ(st.st_gid, 7);
    CHECK_OK(stat(rig_path("outside"), &st));
    CHECK_EQ(st.st_uid, 0);
    /* his own, and without search permission afterwards */
    rig_ask(&r, WIRE_FILE_CHMOD, OTHER, rig_path("a"));
    rig_put(&r, WIRE_T_MODE, 0600);
    rig_put(&r, WIRE_T_FLAGS, WIRE_F_RECURSIVE);
    CHECK_STR(rig_run(&r), "");
    CHECK_EQ(rig_mode("a/e/deep"), 0600);
    CHECK_EQ(rig_mode("a/e"), 0600);
    rig_ask(&r, WIRE_FILE_CHOWN, OTHER, rig_path("outside"));
    rig_text_field(&r, WIRE_T_OWNER, "65534");
    CHECK_STR(rig_run(&r), "permission_denied");
    rig_ask(&r, WIRE_FILE_CHOWN, "root", rig_path("outside"));
    rig_text_field(&r, WIRE_T_OWNER, "no-such-user");
    CHECK_STR(rig_run(&r), "user_not_found");
    rig_leave();
}

TEST(links_lengths_and_attributes)
{
    struct rig r;
    struct stat st;
    rig_enter();
    plant();
    rig_ask(&r, WIRE_FILE_SYMLINK, "root", rig_path("new/link"));
    rig_text_field(&r, WIRE_T_TO, "../a/f");
    CHECK_STR(rig_run(&r), "");
    CHECK_STR(rig_text("new/link"), "hello");
    rig_ask(&r, WIRE_FILE_SYMLINK, "root", rig_path("a/f"));
    rig_text_field(&r, WIRE_T_TO, "x");
    CHECK_STR(rig_run(&r), "file_exists");
    rig_ask(&r, WIRE_FILE_TRUNCATE, "root", rig_path("a/f"));
    rig_put(&r, WIRE_T_SIZE, 2);
    CHECK_STR(rig_run(&r), "");
    CHECK_STR(rig_text("a/f"), "he");
    rig_ask(&r, WIRE_FILE_TRUNCATE, "root", rig_path("a/f"));
    rig_put(&r, WIRE_T_SIZE, 1ull << 33);
    CHECK_STR(rig_run(&r), "");
    CHECK_OK(stat(rig_path("a/f"), &st));
    CHECK_EQ(st.st_size, (off_t)1 << 33);
    rig_ask(&r, WIRE_FILE_TRUNCATE, "root", rig_path("a"));
    rig_put(&r, WIRE_T_SIZE, 0);
    CHECK_STR(rig_run(&r), "is_a_directory");
    rig_ask(&r, WIRE_FILE_XATTR_SET, "root", rig_path("a/f"));
    CHECK_OK(wire_put(&r.ask, WIRE_T_XATTR, "user.k\0v\0w", 10));
    const char *what = rig_run(&r);
    if (strcmp(what, "not_supported") != 0) {
        CHECK_STR(what, "");
        rig_ask(&r, WIRE_FILE_XATTRS, "root", rig_path("a/f"));
        rig_go(&r);
        CHECK_OK(rig_next(&r));
        struct wire_field f;
        CHECK(rig_field(&r.in, WIRE_T_XATTR, &f));
        CHECK_EQ(f.n, 10);
        CHECK_MEM(f.p, "user.k\0v\0w", 10);
        rig_done(&r);
        for (int i = 0; i < 2; i++) {
            rig_ask(&r, WIRE_FILE_XATTR_RM, "root", rig_path("a/f"));
            rig_text_field(&r, WIRE_T_TEXT, "user.k");
            CHECK_STR(rig_run(&r), i ? "xattr_not_found" : "");
        }
    }
    rig_leave();
}

TEST(find_and_usage_see_what_is_there)
{
    struct rig r;
    rig_enter();
    plant();
    CHECK_OK(link(rig_path("a/f"), rig_path("a/f2")));
    rig_ask(&r, WIRE_FILE_FIND, "root", rig_path(""));
    rig_text_field(&r, WIRE_T_PATTERN, "d*");
    rig_text_field(&r, WIRE_T_PATTERN, "a/s");
    CHECK_STR(rig_run(&r), "");
    CHECK_STR(r.seen, "a/e/deep a/s ");
    rig_ask(&r, WIRE_FILE_FIND, "root", rig_path(""));
    rig_put(&r, WIRE_T_TYPE, WIRE_DIRECTORY);
    CHECK_STR(rig_run(&r), "");
    CHECK_STR(r.seen, "a a/e ");
    rig_ask(&r, WIRE_FILE_FIND, "root", rig_path(""));
    rig_put(&r, WIRE_T_LIMIT, 2);
    rig_go(&r);
    CHECK_OK(rig_finish(&r));
    CHECK_STR(r.seen, "a a/e ");
    char after[600];
    rig_string(&r, WIRE_T_AFTER, after, sizeof(after));
    CHECK(*after);
    rig_done(&r);
    rig_ask(&r, WIRE_FILE_USAGE, "root", rig_path("a"));
    rig_go(&r);
    CHECK_OK(rig_finish(&r));
    CHECK_EQ(rig_number(&r, WIRE_T_FILES), 4);
    CHECK_EQ(rig_number(&r, WIRE_T_DIRS), 2); /* itself too */
    CHECK_EQ(rig_number(&r, WIRE_T_SIZE), 9); /* hello and deep, the second name of hello not */
    rig_done(&r);
    rig_leave();
}
