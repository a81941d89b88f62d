/* Each test runs in a child of its own: a process cannot take back what it gave up. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/sanitized.h"
#include "confine/calls.h"
#include "confine/paths.h"
#include "confine/rights.h"

/* 0, or the number of the line that failed in the child. */
static int in_child(int (*work)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(work());
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

#define TRUE(what_)          \
    do {                     \
        if (!(what_))        \
            return __LINE__; \
    } while (0)
#define FAILS(call_, errno_) TRUE((call_) < 0 && errno == (errno_))

static int allow_few(void)
{
    static const char *const few[] = { "write", "exit_group", "mmap", "munmap", "no_such_call" };
    TRUE(calls_allow(few, ARRAY_LEN(few), NULL) == 0);
    FAILS(syscall(SYS_execve, "/bin/true", NULL, NULL), EPERM);
    FAILS(syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY), EPERM);
    FAILS(syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0), EPERM);
    FAILS(syscall(SYS_socket, 1, 1, 0), EPERM);
    FAILS(syscall(4000), ENOSYS); /* newer than libseccomp */
    FAILS(syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
          EPERM);
    TRUE(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
         MAP_FAILED);
    return 0;
}

static int refuse_some(void)
{
    static const char *const some[] = { "ptrace", "mount", "bpf", "unshare" };
    TRUE(calls_refuse(some, ARRAY_LEN(some), NULL) == 0);
    FAILS(syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0), EPERM);
    FAILS(syscall(SYS_mount, "none", "/proc", "tmpfs", 0, NULL), EPERM);
    FAILS(syscall(SYS_bpf, 0, NULL, 0), EPERM);
    FAILS(syscall(SYS_unshare, CLONE_NEWUSER), EPERM);
    FAILS(syscall(SYS_clone3, NULL, 0), ENOSYS);
    FAILS(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0), EPERM);
    FAILS(syscall(SYS_clone, CLONE_NEWNS | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0), EPERM);
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    TRUE(pid > 0 && waitpid(pid, NULL, 0) == pid);
    return 0;
}

static int few_paths(void)
{
    static const struct paths_rule rules[] = { { "/usr", false },
                                               { "/dev/null", true },
                                               { "/no/such/path", true } };
    int r = paths_confine(rules, ARRAY_LEN(rules), true, NULL);
    if (r == 1)
        return 0; /* this kernel has no Landlock */
    TRUE(r == 0);
    FAILS(open("/etc/passwd", O_RDONLY), EACCES);
    FAILS(open("/tmp/confined", O_WRONLY | O_CREAT, 0600), EACCES);
    FAILS(open("/usr/confined", O_WRONLY | O_CREAT, 0600), EACCES);
    TRUE(open("/usr", O_RDONLY | O_DIRECTORY) >= 0);
    TRUE(open("/dev/null", O_WRONLY | O_TRUNC) >= 0);
    FAILS(mkdir("/tmp/confined", 0700), EACCES);
    return 0;
}

static int one_right(void)
{
    static const int one[] = { CAP_CHOWN };
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct now[2];
    TRUE(rights_bound(one, ARRAY_LEN(one), NULL) == 0 && rights_hold(one, 1, NULL) == 0);
    TRUE(syscall(SYS_capget, &head, now) == 0);
    TRUE(now[0].permitted == 1u << CAP_CHOWN && now[0].effective == 1u << CAP_CHOWN);
    TRUE(now[1].permitted == 0 && now[0].inheritable == 0);
    FAILS(syscall(SYS_mount, "none", "/proc", "tmpfs", 0, NULL), EPERM);
    TRUE(prctl(PR_CAPBSET_READ, CAP_CHOWN) == 1 && prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN) == 0);
    TRUE(rights_hold(NULL, 0, NULL) == 0);
    TRUE(syscall(SYS_capget, &head, now) == 0 && now[0].permitted == 0);
    return 0;
}

static int become_nobody(void)
{
    TRUE(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) == 0); /* as the keeper's children */
    TRUE(rights_become(65534, 65534, NULL) == 0);
    TRUE(getuid() == 65534 && getegid() == 65534 && getgroups(0, NULL) == 0);
    FAILS(setgid(0), EPERM);
    TRUE(rights_become(0, 0, NULL) < 0);
    return 0;
}

static int stay_root(void)
{
    TRUE(rights_become(0, 0, NULL) == -EPERM);
    return 0;
}

TEST(a_user_that_is_given_up_is_gone)
{
    if (geteuid() != 0)
        return;
    CHECK_EQ(in_child(become_nobody), 0);
    CHECK_EQ(in_child(stay_root), 0);
}

TEST(a_call_that_is_not_on_the_list_is_refused)
{
    if (!SANITIZED)
        CHECK_EQ(in_child(allow_few), 0);
}

TEST(a_call_on_the_other_list_is_refused_and_threads_still_start)
{
    if (!SANITIZED)
        CHECK_EQ(in_child(refuse_some), 0);
}

TEST(a_path_that_is_not_on_the_list_is_out_of_reach)
{
    if (!SANITIZED)
        CHECK_EQ(in_child(few_paths), 0);
}

TEST(a_capability_that_is_not_kept_is_gone)
{
    if (geteuid() == 0)
        CHECK_EQ(in_child(one_right), 0);
}
