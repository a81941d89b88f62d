#include "kernel/starter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fd.h"

#define END_MS 30000

static char sh[] = "/bin/sh", how[] = "-c";

TEST(starts_the_program_with_its_socket_and_nothing_else)
{
    char script[] =
        "echo $(ls /proc/self/fd) >&3; pwd >&3"; /* ls has its directory and a pipe, too */
    char *argv[] = { sh, how, script, NULL }, text[64] = "";
    struct starter s = STARTER_INIT;
    struct starter_child c;
    struct starter_place here = { .n = 0 };
    struct err err = ERR_INIT;
    int ends[2];
    if (geteuid() != 0)
        return;
    CHECK_OK(starter_start(&s, argv, &err));
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    CHECK_OK(chdir("/usr"));
    CHECK_OK(starter_run(s.fd, &here, ends[1], -1, 0, &c, &err));
    (void)close(ends[1]);
    starter_wait(&c);
    CHECK(read(ends[0], text, sizeof(text) - 1) > 0);
    CHECK_STR(text, "0 1 2 3 4\n/usr\n");
    (void)close(ends[0]);
    starter_end(&s);
}

TEST(who_asks_a_starter_that_is_dead_or_asks_for_too_little_is_told)
{
    char script[] = "exit 0";
    char *argv[] = { sh, how, script, NULL };
    struct starter s = STARTER_INIT;
    struct starter_child c;
    struct starter_place odd = { .n = 0 };
    struct err err = ERR_INIT;
    if (geteuid() != 0)
        return;
    CHECK_OK(starter_start(&s, argv, &err));
    CHECK_OK(fd_send_msg(s.fd, "short", 5, NULL, 0)); /* passed over */
    CHECK_OK(starter_place_add(&odd, (enum starter_step)77, STDIN_FILENO));
    CHECK_OK(starter_run(s.fd, &odd, STDIN_FILENO, -1, 0, &c, &err));
    CHECK(fd_wait(c.pidfd, POLLIN, END_MS) > 0); /* it ended before it became the program */
    starter_wait(&c);
    CHECK_OK(kill(s.pid, SIGKILL));
    CHECK(fd_wait(s.fd, POLLIN, END_MS) & POLLHUP);
    CHECK(starter_run(s.fd, &odd, STDIN_FILENO, -1, 0, &c, &err) < 0);
    starter_end(&s);
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1); /* no zombie */
}

TEST(a_starter_ends_when_nobody_can_ask_and_keeps_no_descriptor)
{
    char script[] = "exit 0";
    char *argv[] = { sh, how, script, NULL };
    struct starter s = STARTER_INIT;
    int ends[2];
    CHECK_OK(pipe2(ends, O_CLOEXEC));
    CHECK_OK(starter_start(&s, argv, NULL));
    (void)close(ends[1]);
    CHECK(fd_wait(ends[0], POLLIN, END_MS) & POLLHUP); /* while the starter lives */
    (void)close(ends[0]);
    (void)close(s.fd);
    CHECK_EQ(waitpid(s.pid, NULL, 0), s.pid);
}
