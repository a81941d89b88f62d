#include "kernel/inject.h"

#include <errno.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"

/* Answers each byte with its effective ids. */
static _Noreturn void answer(int fd)
{
    char byte;
    while (recv(fd, &byte, 1, 0) == 1) {
        uid_t ids[3];
        if (getresuid(&ids[0], &ids[1], &ids[2]) < 0 || send(fd, ids, sizeof(ids), 0) < 0)
            break;
    }
    _exit(0);
}

TEST(a_process_in_the_middle_of_a_call_acts_as_another_and_goes_on)
{
    int ends[2];
    uid_t ids[3];
    struct err err = ERR_INIT;
    if (getuid() != 0)
        return;
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP);
        (void)close(ends[0]);
        answer(ends[1]);
    }
    (void)close(ends[1]);
    for (unsigned i = 0; i < 20; i++) {
        uid_t wanted = i % 2 ? 0 : 400000 + i;
        CHECK_OK(inject_euid(pid, wanted, &err));
        CHECK_EQ(send(ends[0], "x", 1, 0), 1);
        CHECK_EQ(recv(ends[0], ids, sizeof(ids), MSG_WAITALL), (ssize_t)sizeof(ids));
        CHECK_EQ(ids[0], 0);
        CHECK_EQ(ids[1], wanted);
        CHECK_EQ(ids[2], 0);
    }
    (void)close(ends[0]);
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(a_process_that_makes_no_call_is_killed_in_time)
{
    struct err err = ERR_INIT;
    int status;
    if (getuid() != 0)
        return;
    volatile unsigned *turns =
        mmap(NULL, sizeof(*turns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(turns != MAP_FAILED);
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            ++*turns;
    while (*turns < 1000) /* it has left fork */
        (void)sched_yield();
    int64_t began = clock_mono_ms();
    int r = inject_euid(pid, 400000, &err);
    (void)kill(pid, SIGKILL);
    CHECK_EQ(r, -ETIMEDOUT);
    CHECK(clock_mono_ms() - began < INJECT_MS + 5000);
    CHECK_EQ(waitpid(pid, &status, __WALL), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    (void)munmap((void *)(uintptr_t)turns, sizeof(*turns));
}
