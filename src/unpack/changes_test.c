/* Directories as overlayfs leaves them; whiteouts need root. */
#include "unpack/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "wire/unpack.h"

#define TOLD_MAX 4096

struct place {
    char dir[32];
    int image, before, after;
};

static int make_dir(const struct place *p, const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/%s", p->dir, name);
    CHECK_OK(mkdir(path, 0755));
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_OK(fd);
    return fd;
}

static struct place place_new(void)
{
    struct place p = { "/tmp/changes-XXXXXX", -1, -1, -1 };
    if (geteuid() != 0)
        check_skip("whiteouts are root's");
    CHECK(mkdtemp(p.dir));
    p.image = make_dir(&p, "image");
    p.before = make_dir(&p, "before");
    p.after = make_dir(&p, "after");
    return p;
}

static void place_done(struct place *p)
{
    char command[64];
    (void)close(p->image);
    (void)close(p->before);
    (void)close(p->after);
    (void)snprintf(command, sizeof(command), "rm -rf %s", p->dir);
    CHECK_EQ(system(command), 0);
}

static void write_file(int dir, const char *path, const char *text)
{
    int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK_OK(fd);
    CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

static void hide(int dir, const char *path)
{
    CHECK_OK(mknodat(dir, path, S_IFCHR, makedev(0, 0)));
}

/* "+/a ~/b -/c", and "…" at the end if it was cut. */
static void check_told(const struct place *p, int before, const char *expected)
{
    static const struct wanted all;
    struct err err = ERR_INIT;
    char text[TOLD_MAX] = "";
    char name[] = "/tmp/told-XXXXXX";
    int fd = mkstemp(name);
    CHECK_OK(fd);
    CHECK_OK(unlink(name));
    CHECK_OK(changes_write(before, p->after, p->image, &all, INT64_MAX, fd, &err));
    CHECK_OK(lseek(fd, 0, SEEK_SET));
    struct change_head h;
    while (read(fd, &h, sizeof(h)) == sizeof(h) && h.kind != CHANGE_END) {
        size_t n = strlen(text);
        text[n] = "?+~-"[h.kind];
        CHECK_EQ(read(fd, text + n + 1, h.path_len), h.path_len);
        memcpy(text + n + 1 + h.path_len, " ", 2);
    }
    CHECK_EQ(h.kind, CHANGE_END);
    CHECK_EQ(h.mode, 0);
    CHECK_STR(text, expected);
    (void)close(fd);
}

TEST(a_walk_ends_when_its_time_is_over)
{
    static const struct wanted all;
    _cleanup_(place_done) struct place p = place_new();
    struct err err = ERR_INIT;
    write_file(p.after, "new", "new");
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK_OK(fd);
    CHECK_EQ(changes_write(-1, p.after, p.image, &all, clock_mono_ms(), fd, &err), -ETIMEDOUT);
    CHECK_OK(changes_write(-1, p.after, p.image, &all, clock_mono_ms() + 60000, fd, &err));
    (void)close(fd);
}

TEST(a_box_against_its_image)
{
    _cleanup_(place_done) struct place p = place_new();
    CHECK_OK(mkdirat(p.image, "etc", 0755));
    write_file(p.image, "etc/hosts", "one");
    write_file(p.image, "etc/same", "same");
    write_file(p.image, "gone", "gone");
    check_told(&p, -1, "");
    CHECK_OK(mkdirat(p.after, "etc", 0755)); /* copied up, as it was */
    write_file(p.after, "etc/hosts", "two");
    write_file(p.after, "etc/new", "new");
    write_file(p.after, "etc/same", "same"); /* opened for writing, and not written */
    hide(p.after, "gone");
    hide(p.after, "never"); /* made and removed */
    check_told(&p, -1, "~/etc/hosts +/etc/new -/gone ");
}

TEST(a_time_that_was_set_back_hides_nothing)
{
    _cleanup_(place_done) struct place p = place_new();
    const struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
    write_file(p.image, "sshd", "good");
    write_file(p.after, "sshd", "evil");
    CHECK_OK(utimensat(p.image, "sshd", times, 0));
    CHECK_OK(utimensat(p.after, "sshd", times, 0));
    check_told(&p, -1, "~/sshd ");
}

TEST(a_directory_made_anew_hides_the_image_below)
{
    _cleanup_(place_done) struct place p = place_new();
    CHECK_OK(mkdirat(p.image, "d", 0755));
    write_file(p.image, "d/old", "old");
    write_file(p.image, "d/kept", "kept");
    CHECK_OK(mkdirat(p.after, "d", 0755));
    write_file(p.after, "d/kept", "kept");
    int d = openat(p.after, "d", O_RDONLY | O_DIRECTORY);
    if (fsetxattr(d, "trusted.overlay.opaque", "y", 1, 0) == 0)
        check_told(&p, -1, "-/d/old ");
    (void)close(d);
}

TEST(two_states_of_a_box)
{
    _cleanup_(place_done) struct place p = place_new();
    write_file(p.image, "a", "a");
    write_file(p.image, "b", "b");
    hide(p.before, "a"); /* removed, then there again */
    write_file(p.before, "c", "c");
    CHECK_OK(mkdirat(p.before, "d", 0755));
    write_file(p.before, "d/x", "x");
    write_file(p.after, "b", "bb");
    write_file(p.after, "c", "c");
    check_told(&p, p.before, "+/a ~/b -/d ");
    check_told(&p, -1, "~/b +/c ");
}

TEST(what_became_something_else)
{
    _cleanup_(place_done) struct place p = place_new();
    write_file(p.image, "f", "f");
    CHECK_OK(mkdirat(p.image, "d", 0755));
    write_file(p.image, "d/x", "x");
    CHECK_OK(mkdirat(p.after, "f", 0755));
    write_file(p.after, "f/in", "in");
    CHECK_OK(symlinkat("f", p.after, "d"));
    check_told(&p, -1, "~/d ~/f +/f/in ");
}
