#include "kernel/criurpc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/check.h"
#include "base/fd.h"

static const char log_text[] =
    "(00.000068) Error (criu/util.c:1533): rlimit: Can't setup RLIMIT_NOFILE for self: Operation not permitted\n"
    "(00.012345) Warn  (criu/x.c:1): nothing much\n"
    "(00.047802) Error (criu/fsnotify.c:200): fsnotify: \tCan't dump that handle\n"
    "(00.047810) Error (criu/cr-dump.c:1671): Dump files (pid: 4711) failed with -1\n"
    "(00.047874) Error (criu/cr-dump.c:2111): Dumping FAILED.\n";

TEST(criurpc_finds_the_first_complaint_that_matters_and_whose_it_is)
{
    char words[128];
    pid_t pid = -1;
    CHECK_OK(criurpc_complaint(log_text, strlen(log_text), words, sizeof(words), &pid));
    CHECK_STR(words, "fsnotify:  Can't dump that handle");
    CHECK_EQ(pid, 4711);
}

TEST(criurpc_has_nothing_to_say_of_a_log_without_complaints)
{
    static const char *const logs[] = { "", "Error", "Error (", "(00.1) Error (criu/x.c:1)",
                                        "Error (criu/cr-dump.c:2111): Dumping FAILED.\n" };
    char words[128];
    pid_t pid;
    for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++)
        CHECK_EQ(criurpc_complaint(logs[i], strlen(logs[i]), words, sizeof(words), &pid), -ENOENT);
}

/* As a CRIU that is killed while a child of its looks what the kernel can do, with its socket. */
TEST(the_end_of_criu_is_heard_whatever_it_leaves)
{
    char dir[] = "/tmp/criurpc-XXXXXX", path[64], text[32] = "";
    struct err err = ERR_INIT;
    CHECK(mkdtemp(dir) != NULL);
    (void)snprintf(path, sizeof(path), "%s/child", dir);
    char sh[] = "/bin/sh", how[] = "-c", script[] = "sleep 1000 & echo $! > $0; kill -9 $$";
    char *argv[] = { sh, how, script, path, NULL };
    struct starter starter = STARTER_INIT;
    CHECK_OK(starter_start(&starter, argv, &err));
    struct criurpc c = { .starter = starter.fd, .work_fd = -1, .images_fd = -1 };
    CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1)); /* so that what it leaves is ours */
    CHECK_EQ(criurpc_dump(&c, NULL, &err), -ECHILD);
    CHECK_OK(fd_read_file_at(AT_FDCWD, path, text, sizeof(text)));
    pid_t child = (pid_t)strtol(text, NULL, 10);
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    starter_end(&starter);
    CHECK_OK(unlink(path));
    CHECK_OK(rmdir(dir));
}
