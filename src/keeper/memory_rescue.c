/* A cell whose dump was cut: CRIU lets its processes go when it sees that nobody listens, init waits
 * where it was parked, the groups are frozen. Whoever comes next brings it back. */
#include "keeper/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "keeper/cell.h"
#include "keeper/park.h"
#include "keeper/record.h"
#include "kernel/cgroup.h"

#define CRIU_WAIT_MS 10000 /* until one that nobody talks to has given up */
#define RETURN_WAIT_MS 5000
#define LOOK_MS 10
#define PIDS_TEXT_MAX 262144

static void wait_for_criu(const struct park_note *note)
{
    const struct record rec = { .pid = note->criu, .start_time = note->criu_start };
    _cleanup_fd_ int pidfd = note->criu > 0 ? record_open_pid(&rec) : -1;
    if (pidfd >= 0 && fd_wait(pidfd, POLLIN, CRIU_WAIT_MS) <= 0) {
        (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
        (void)fd_wait(pidfd, POLLIN, CRIU_WAIT_MS);
    }
}

/* CRIU leaves what it is to end stopped; it goes on after all. */
static void continue_all(int group, const char *file)
{
    _cleanup_free_ char *pids = malloc(PIDS_TEXT_MAX);
    char *save = NULL;
    if (!pids || fd_read_file_at(group, file, pids, PIDS_TEXT_MAX) < 0)
        return;
    for (char *p = strtok_r(pids, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
        (void)kill((pid_t)strtol(p, NULL, 10), SIGCONT);
}

static void continue_families(int group)
{
    int fd = openat(group, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300];
        (void)snprintf(path, sizeof(path), "work/%s/cgroup.procs", e->d_name);
        if (e->d_name[0] == 'p')
            continue_all(group, path);
    }
    if (d)
        (void)closedir(d);
}

int memory_rescue(struct keeper *k, const char *id, pid_t pid, struct err *err)
{
    struct park_note note;
    _cleanup_fd_ int run_dir =
        openat(k->cells_dir, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    _cleanup_fd_ int group = cgroup_open(k->cgroups, id);
    _cleanup_(cgroup_fds_close) struct cgroup_fds fds = CGROUP_FDS_INIT;
    _cleanup_(parked_close) struct parked parked = PARKED_INIT;
    int r = run_dir < 0 || group < 0 ? -ENOENT : park_note_read(run_dir, &note);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return err_set(err, -r, "cannot read how the sandbox was parked");
    /* Whoever comes meanwhile waits in line; unless init still listens itself. */
    r = park_is_deaf(run_dir) ? cell_make_socket(k, id, run_dir, &parked.listener, err) : 0;
    if (r < 0)
        return r;
    wait_for_criu(&note);
    (void)fd_write_file_at(group, "work/cgroup.freeze", "1");
    (void)fd_write_file_at(group, "cgroup.freeze", "0");
    continue_all(group, "init/cgroup.procs");
    continue_families(group);
    r = cgroup_reopen(k->cgroups, id, &fds, err);
    for (int64_t end = clock_mono_ms() + RETURN_WAIT_MS; r == 0;) {
        if (parked.listener < 0 && park_ping(run_dir) == 0)
            break; /* it never was */
        if (parked.listener < 0 && park_is_deaf(run_dir))
            r = cell_make_socket(k, id, run_dir, &parked.listener, err);
        if (r == 0 && parked.listener >= 0 && park_return(pid, note.name, &parked, &fds, err) == 0)
            break;
        if (clock_mono_ms() >= end)
            return err_set(err, ETIMEDOUT, "the sandbox's init cannot be reached");
        (void)poll(NULL, 0, LOOK_MS);
    }
    if (r == 0)
        park_note_remove(run_dir);
    return r;
}
