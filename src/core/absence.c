#include "core/absence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "wire/keeper.h"

#define LOG_MODULE "adopt"
#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define NOTE "host-boot" /* a file in the state's directory */
#define PATH_SIZE 4096
#define TEXT_SIZE 64

void absence_read(struct core *core, const char *state_dir)
{
    char path[PATH_SIZE], noted[TEXT_SIZE], now[TEXT_SIZE];
    core->absence = (struct absence){ 0 };
    int n = snprintf(path, sizeof(path), "%s/" NOTE, state_dir);
    if (n > 0 && (size_t)n < sizeof(path) &&
        fd_read_file_at(AT_FDCWD, path, noted, sizeof(noted)) > 0 &&
        fd_read_file_at(AT_FDCWD, BOOT_ID, now, sizeof(now)) > 0)
        core->absence.rebooted = strcmp(noted, now) != 0;
    n = snprintf(path, sizeof(path), "%s/" KEEPER_ENDED_FILE, core->run_dir);
    if (n > 0 && (size_t)n < sizeof(path) &&
        fd_read_file_at(AT_FDCWD, path, noted, sizeof(noted)) > 0)
        core->absence.ended_ms = strtoll(noted, NULL, 10);
}

static int write_note(const char *state_dir, const char *text)
{
    _cleanup_fd_ int dir = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int fd =
        dir < 0
            ? -1
            : openat(dir, NOTE ".new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : fd_write_full(fd, text, strlen(text));
    if (r >= 0 && renameat(dir, NOTE ".new", dir, NOTE) < 0)
        r = -errno;
    return r;
}

void absence_noted(struct core *core, const char *state_dir)
{
    char now[TEXT_SIZE];
    core->absence = (struct absence){ 0 };
    ssize_t n = fd_read_file_at(AT_FDCWD, BOOT_ID, now, sizeof(now));
    int r = n < 0 ? (int)n : write_note(state_dir, now);
    if (r < 0)
        log_warn("cannot note the host's boot id: after a reboot sandboxes seem crashed err=%d",
                 -r);
}

enum sandbox_cause absence_cause(const struct core *core, const struct sandbox *s)
{
    if (core->absence.rebooted)
        return CAUSE_REBOOT;
    return s->started_ms && s->started_ms <= core->absence.ended_ms ? CAUSE_SHUTDOWN
                                                                    : CAUSE_CRASHED;
}
