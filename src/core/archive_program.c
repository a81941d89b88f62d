#include "core/archive_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>

#include "base/fd.h"
#include "core/private.h"

#define HIGH_FD 16 /* above every number the program gets its descriptors under */
#define WORDS_MAX 4
#define ENDS 4

static const int numbers[ENDS] = { 0, 1, 3, 4 };

/* Copies with numbers out of the way of those they are to have. */
static int raise_fds(const int *fds, int *ret_high, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ret_high[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, HIGH_FD);
        if (fds[i] >= 0 && ret_high[i] < 0) {
            int r = -errno;
            fd_close_all(ret_high, i);
            return r;
        }
    }
    return 0;
}

static int add_ends(posix_spawn_file_actions_t *fa, const int ends[ENDS])
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < ENDS; i++)
        if (ends[i] >= 0)
            r = posix_spawn_file_actions_adddup2(fa, ends[i], numbers[i]);
        else if (numbers[i] < 2)
            r = posix_spawn_file_actions_addopen(fa, numbers[i], "/dev/null", O_RDWR, 0);
    return r;
}

static int spawn(int program, const char *const *words, const int ends[ENDS], pid_t *ret_pid)
{
    char path[32];
    const char *argv[WORDS_MAX + 2] = { "warren-archive" };
    char *envp[] = { NULL };
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    sigset_t none, all;

    for (size_t i = 0; i < WORDS_MAX && words[i]; i++)
        argv[i + 1] = words[i];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", program);
    if (posix_spawn_file_actions_init(&fa) != 0)
        return -ENOMEM;
    if (posix_spawnattr_init(&at) != 0) {
        (void)posix_spawn_file_actions_destroy(&fa);
        return -ENOMEM;
    }
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawnattr_setsigmask(&at, &none);
    (void)posix_spawnattr_setsigdefault(&at, &all);
    (void)posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int r = add_ends(&fa, ends);
    if (r == 0) /* everything else is close-on-exec */
        r = posix_spawn(ret_pid, path, &fa, &at, (char *const *)(uintptr_t)argv, envp);
    (void)posix_spawn_file_actions_destroy(&fa);
    (void)posix_spawnattr_destroy(&at);
    return -r;
}

int archive_program_start(struct core *core, const char *const *words,
                          const struct archive_ends *ends, pid_t *ret_pid, struct err *err)
{
    const int fds[ENDS + 1] = { ends->in, ends->out, ends->third, ends->report, core->archive_fd };
    int high[ENDS + 1];
    pid_t pid;
    if (core->archive_fd <= 0)
        return err_fail_as(err, ENOENT, FAIL_NOT_SUPPORTED,
                           "warren-archive is not installed beside warrend");
    int r = raise_fds(fds, high, ENDS + 1);
    if (r < 0)
        return err_set(err, -r, "cannot hand descriptors over");
    r = spawn(high[ENDS], words, high, &pid);
    fd_close_all(high, ENDS + 1);
    if (r < 0)
        return err_set(err, -r, "cannot start warren-archive");
    *ret_pid = pid;
    return 0;
}
