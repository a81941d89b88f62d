#include "attack/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/check.h"

static void fall(const struct attempt *self, struct outcome *o)
{
    refused(o, syscall(SYS_getpid), "a call that nobody refuses");
    held(o, "and yet");
}

static void die(const struct attempt *self, struct outcome *o)
{
    (void)raise(SIGKILL);
}

static void keep_silent(const struct attempt *self, struct outcome *o)
{
}

TEST(a_wall_that_is_broken_is_called_so)
{
    struct outcome o;
    const struct attempt a = { .name = "fall", .run = fall };
    attempt_run(&a, &o);
    CHECK_EQ(o.verdict, VERDICT_BROKE); /* a later held does not hide it */
    CHECK_STR(o.why, "a call that nobody refuses succeeded");
}

TEST(a_death_holds_only_where_it_is_an_answer)
{
    struct outcome o;
    struct attempt a = { .name = "die", .run = die };
    attempt_run(&a, &o);
    CHECK_EQ(o.verdict, VERDICT_BROKE);
    a.flags = ATTEMPT_DEATH_HOLDS;
    attempt_run(&a, &o);
    CHECK_EQ(o.verdict, VERDICT_HELD);
}

TEST(an_attempt_that_says_nothing_did_not_hold)
{
    struct outcome o;
    const struct attempt a = { .name = "silent", .run = keep_silent };
    attempt_run(&a, &o);
    CHECK_EQ(o.verdict, VERDICT_BROKE);
}

TEST(an_error_that_the_kernel_itself_gives_is_past_the_filter)
{
    struct outcome o = { 0 };
    errno = EPERM;
    refused(&o, -1, "x");
    CHECK_EQ(o.verdict, VERDICT_HELD);
    errno = EINVAL;
    refused(&o, -1, "x");
    CHECK_EQ(o.verdict, VERDICT_BROKE);
}

TEST(a_tree_with_one_writable_file_is_broken)
{
    char top[] = "/tmp/attack-test-XXXXXX", below[64], path[80];
    struct outcome o = { 0 };
    CHECK(mkdtemp(top) != NULL);
    tree_unwritable(&o, top);
    CHECK_EQ(o.verdict, VERDICT_NOT_HERE); /* nothing was tried: that is not held */
    (void)snprintf(below, sizeof(below), "%s/d", top);
    (void)snprintf(path, sizeof(path), "%s/f", below);
    CHECK_OK(mkdir(below, 0700));
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK_OK(fd);
    (void)close(fd);
    tree_unwritable(&o, top);
    CHECK_EQ(o.verdict, VERDICT_BROKE);
    (void)unlink(path);
    (void)rmdir(below);
    (void)rmdir(top);
}

TEST(every_attempt_can_be_found_by_a_name_of_its_own)
{
    const char *category = NULL;
    CHECK(attempt_find("mount-proc", &category) != NULL);
    CHECK_STR(category, "mounts");
    CHECK(attempt_find("no-such-attempt", NULL) == NULL);
    for (size_t i = 0; i < holds_n; i++) {
        CHECK(hold_find(holds[i].name) == &holds[i]);
        CHECK(attempt_find(holds[i].name, NULL) == NULL);
    }
}
