/* What CRIU works on: a mount namespace of its own, and a place to write to that does not keep a cell
 * waiting for a disk. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/criu.h"
#include "base/fd.h"
#include "keeper/memory.h"
#include "kernel/cgroup.h"
#include "kernel/mount.h"

#define CACHE "cache" /* of the shared directory, our working directory */
#define RUN "/run"
#define ROOM_SHARE 3 /* a cell's memory may take this part of what is free */

/* CRIU remembers what it found out of the kernel in /run, if that is in memory: some 60 ms of each run.
 * Where it is not, it is shown a directory that is. */
static void lend_cache(const char *here)
{
    struct statfs fs;
    if (statfs(RUN, &fs) < 0 || fs.f_type == TMPFS_MAGIC || strncmp(here, RUN "/", 5) == 0)
        return;
    (void)mount(CACHE, RUN, NULL, MS_BIND, NULL);
}

/* The keeper has let go of all that cells need not see; CRIU looks for the host's terminals. */
int memory_own_mounts(struct err *err)
{
    char here[PATH_MAX];
    if (!getcwd(here, sizeof(here)) || unshare(CLONE_NEWNS) < 0 || chdir(here) < 0 ||
        mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance") < 0)
        return err_set(err, errno, "cannot make a mount namespace");
    lend_cache(here);
    return 0;
}

static uint64_t free_memory(void)
{
    char text[4096];
    const char *at = fd_read_file_at(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) < 0
                         ? NULL
                         : strstr(text, "MemAvailable:");
    return at ? strtoull(at + strlen("MemAvailable:"), NULL, 10) * 1024 : 0;
}

int memory_desk(struct keeper *k, const char *id, int kept, int *ret_fd, struct err *err)
{
    *ret_fd = kept;
    if (cgroup_memory_bytes(k->cgroups, id) > free_memory() / ROOM_SHARE)
        return 0;
    return mount_new("tmpfs", NULL, 0, 0, ret_fd, err);
}

static int copy_one(int desk, int kept, const char *name)
{
    struct stat sb;
    _cleanup_fd_ int from = openat(desk, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (from < 0 || fstat(from, &sb) < 0)
        return -errno;
    if (!S_ISREG(sb.st_mode))
        return 0;
    _cleanup_fd_ int to = openat(kept, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (to < 0)
        return -errno;
    if (sb.st_size == 0)
        return 0;
    char *p = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, from, 0);
    if (p == MAP_FAILED)
        return -errno;
    int r = fd_write_full(to, p, (size_t)sb.st_size);
    (void)munmap(p, (size_t)sb.st_size);
    return r;
}

int memory_desk_clear(int desk, int kept, struct err *err)
{
    int copy = openat(desk, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    int r = d ? 0 : -errno;
    for (struct dirent *e; r == 0 && d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            r = copy_one(desk, kept, e->d_name);
    if (d)
        (void)closedir(d);
    if (r == -ENOSPC || r == -EDQUOT)
        return err_fail_as(err, -r, FAIL_NO_SPACE, "there is no room for the sandbox's memory");
    return r < 0 ? err_set(err, -r, "cannot keep the sandbox's memory") : 0;
}

int memory_find_criu(struct criu *ret, struct err *err)
{
    int r = criu_find(ret, err);
    if (r < 0)
        err->failure = FAIL_MEMORY_UNSUPPORTED;
    return r;
}
