#include "init/family.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "init/ps.h"

#define NAME_SIZE 16   /* "p" and an unsigned */
#define NEW_TRIES 1024 /* names in use by groups that were here before us */
#define KILL_PASSES 64 /* where the kernel has no cgroup.kill: until nobody is left */
#define PARKED (-2)    /* a directory that is not open at the moment */
#define EVENTS_MAX 256 /* "populated 0\nfrozen 0\n" and what may come */

static struct {
    int group_fd;
    unsigned last;
    struct family spare;
} families = { .group_fd = -1, .spare = FAMILY_INIT };

void family_setup(int group_fd)
{
    families.group_fd = group_fd;
}

static const char *name_of(unsigned number, char out[NAME_SIZE])
{
    (void)snprintf(out, NAME_SIZE, "p%u", number);
    return out;
}

int family_new(struct family *f)
{
    if (families.group_fd < 0)
        return 0;
    if (families.spare.dir >= 0) {
        *f = families.spare;
        families.spare.dir = -1;
        return 0;
    }
    char name[NAME_SIZE];
    int tries = 0;
    while (mkdirat(families.group_fd, name_of(++families.last, name), 0755) < 0)
        if (errno != EEXIST || ++tries == NEW_TRIES)
            return -errno;
    int dir = openat(families.group_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0) {
        int r = -errno;
        (void)unlinkat(families.group_fd, name, AT_REMOVEDIR);
        return r;
    }
    *f = (struct family){ .dir = dir, .number = families.last };
    return 0;
}

int family_join(const struct family *f)
{
    int fd = openat(f->dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = write(fd, "0", 1) < 0 ? -errno : 0;
    (void)close(fd);
    return r;
}

/* Signal every process that cgroup.procs lists. */
static int signal_listed(const struct family *f, int signo)
{
    _cleanup_fd_ int fd = openat(f->dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    char buf[1024];
    long pid = 0;
    int count = 0;
    for (;;) {
        ssize_t n = read(fd, buf, sizeof(buf));
        if (n <= 0)
            return n < 0 ? -errno : count;
        for (ssize_t i = 0; i < n; i++) {
            if (buf[i] != '\n') {
                pid = pid * 10 + (buf[i] - '0');
                continue;
            }
            /* 0 is a process that our pid namespace does not see. */
            if (pid > 1 && kill((pid_t)pid, signo) == 0)
                count++;
            pid = 0;
        }
    }
}

static int kill_group(struct family *f)
{
    bool alive = family_alive(f);
    f->killed = true;
    int r = fd_write_file_at(f->dir, "cgroup.kill", "1");
    if (r == 0)
        return alive;
    if (r != -ENOENT)
        return r;
    for (int i = 0; i < KILL_PASSES && (r = signal_listed(f, SIGKILL)) > 0; i++)
        ;
    return r < 0 ? r : alive;
}

int family_signal(struct family *f, pid_t leader, int signo)
{
    if (f->dir >= 0)
        return signo == SIGKILL ? kill_group(f) : signal_listed(f, signo);
    if (signo != SIGKILL)
        return ps_signal_tree(leader, signo);
    /* Stop them first: what is stopped starts nothing while the others are looked for. */
    (void)ps_signal_tree(leader, SIGSTOP);
    return ps_signal_tree(leader, SIGKILL);
}

bool family_alive(const struct family *f)
{
    char text[EVENTS_MAX];
    return f->dir >= 0 && fd_read_file_at(f->dir, "cgroup.events", text, sizeof(text)) > 0 &&
           strstr(text, "populated 1") != NULL;
}

void family_release(struct family *f)
{
    if (f->dir < 0)
        return;
    /* A group that was killed once stays deadly: clone3 compares how often it and the parent's
     * group were, and takes the difference for a kill that the newborn missed. */
    if (families.spare.dir < 0 && !f->killed) {
        families.spare = *f;
    } else {
        char name[NAME_SIZE];
        (void)close(f->dir);
        (void)unlinkat(families.group_fd, name_of(f->number, name), AT_REMOVEDIR);
    }
    f->dir = -1;
}

void family_let_go(void)
{
    char name[NAME_SIZE];
    if (families.spare.dir >= 0) {
        (void)close(families.spare.dir);
        (void)unlinkat(families.group_fd, name_of(families.spare.number, name), AT_REMOVEDIR);
        families.spare.dir = -1;
    }
    if (families.group_fd >= 0)
        (void)close(families.group_fd);
    families.group_fd = -1;
}

void family_park(struct family *f)
{
    if (f->dir < 0)
        return;
    (void)close(f->dir);
    f->dir = PARKED;
}

void family_unpark(struct family *f)
{
    char name[NAME_SIZE];
    if (f->dir != PARKED)
        return;
    (void)name_of(f->number, name);
    if (families.group_fd >= 0)
        (void)mkdirat(families.group_fd, name, 0755); /* an empty one is not brought back */
    f->dir = families.group_fd < 0
                 ? -1
                 : openat(families.group_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}
