/* The calls that the keeper gives up, against those that its sandboxes may make. */
#include <errno.h>
#include <linux/filter.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/sanitized.h"
#include "confine/calls.h"
#include "kernel/seccomp.h"

/* In a child, after `enter`: 0, or 1 + the place of the first refused call that is not refused there. Arguments that
 * no call accepts: one that gets through fails in another way. */
static int first_allowed(int (*enter)(void))
{
    size_t n;
    const char *const *names = calls_refused(&n);
    int numbers[128], status = 0;
    CHECK(n < ARRAY_LEN(numbers));
    for (size_t i = 0; i < n; i++)
        numbers[i] = seccomp_syscall_resolve_name(names[i]);
    pid_t pid = fork();
    if (pid == 0) {
        if (enter() < 0)
            _exit(255);
        for (size_t i = 0; i < n; i++)
            if (numbers[i] >= 0 && (syscall(numbers[i], -1L, -1L, -1L, -1L, -1L, -1L) >= 0 ||
                                    (errno != EPERM && errno != ENOSYS)))
                _exit(1 + (int)i);
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

static int enter_filter(void)
{
    return calls_refuse_few(NULL);
}

static int enter_cell(void)
{
    static const struct seccomp_cookie cookie = { 1, 2 };
    struct sock_fprog *prog = NULL;
    int r = seccomp_compile(&cookie, &prog, NULL);
    if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = -errno;
    if (r == 0)
        r = seccomp_install(prog);
    free(prog);
    return r;
}

static int enter_filter_and_look(void)
{
    int r = calls_refuse_few(NULL);
    return r == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0 ? -EPERM : r;
}

static int enter_walls(void)
{
    return calls_refuse(NULL, 0, NULL);
}

TEST(warrend_gives_up_what_the_keeper_does)
{
    if (!SANITIZED)
        CHECK_EQ(first_allowed(enter_walls), 0);
}

TEST(every_call_of_the_list_is_refused_and_setuid_programs_still_work)
{
    if (SANITIZED || geteuid() != 0)
        return;
    CHECK_EQ(first_allowed(enter_filter), 0);
    CHECK_EQ(first_allowed(enter_filter_and_look), 0);
}

/* Sandboxes inherit the keeper's filter. */
TEST(nothing_is_refused_that_a_sandbox_may_call)
{
    CHECK_EQ(first_allowed(enter_cell), 0);
}
