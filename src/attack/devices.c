/* Devices: those that a sandbox makes for itself, and those that it was given. */
#include "attack/attempt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* args: kind, major, minor */
static void run_node(const struct attempt *self, struct outcome *o)
{
    static const int ways[] = { O_RDONLY, O_WRONLY, O_RDWR };
    char path[64];
    (void)snprintf(path, sizeof(path), "/tmp/attack-%s", self->name);
    (void)unlink(path);
    if (mknod(path, (mode_t)self->args[0] | 0600,
              makedev((unsigned)self->args[1], (unsigned)self->args[2])) < 0) {
        held(o, "mknod: %s", strerror(errno));
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        int fd = open(path, ways[i] | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 && errno != EACCES && errno != EPERM)
            broke(o, "opening the device got as far as its driver: %s", strerror(errno));
        else if (fd >= 0)
            broke(o, "the device opens");
        if (fd >= 0)
            (void)close(fd);
    }
    (void)unlink(path);
    held(o, "the node is there and leads nowhere");
}

static void run_given(const struct attempt *self, struct outcome *o)
{
    static const char *const fine[] = { "null",    "zero",   "full",    "random",
                                        "urandom", "tty",    "ptmx",    "pts",
                                        "shm",     "fd",     "stdin",   "stdout",
                                        "stderr",  "mqueue", "console", "core" };
    struct dirent *e;
    DIR *dir = opendir("/dev");
    while (dir && (e = readdir(dir))) {
        bool known = e->d_name[0] == '.';
        for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
            known = known || strcmp(fine[i], e->d_name) == 0;
        if (!known)
            broke(o, "/dev/%s is there", e->d_name);
    }
    if (dir)
        (void)closedir(dir);
    held(o, "only harmless devices");
}

static void run_make_in_dev(const struct attempt *self, struct outcome *o)
{
    int fd = open("/dev/attack", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    failed(o, fd, "a file in /dev");
    failed(o, unlink("/dev/null"), "unlink of /dev/null");
    failed(o, chmod("/dev/null", 0600), "chmod of /dev/null, which all share");
}

/* The sandbox must have a devpts instance of its own: terminal 0 is free, or its own. */
static void run_ptmx(const struct attempt *self, struct outcome *o)
{
    struct stat dev, pts;
    if (stat("/dev/ptmx", &dev) < 0 || stat("/dev/pts", &pts) < 0) {
        not_here(o, "no terminals");
        return;
    }
    int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    unsigned n = 0;
    if (fd < 0 || ioctl(fd, 0x80045430 /* TIOCGPTN */, &n) < 0) {
        not_here(o, "no terminal: %s", strerror(errno));
        return;
    }
    char path[64];
    (void)snprintf(path, sizeof(path), "/dev/pts/%u", n);
    if (stat(path, &dev) < 0 || dev.st_dev != pts.st_dev)
        broke(o, "the terminal %u is not of this sandbox's instance", n);
    (void)close(fd);
    held(o, "terminals are of an instance of its own");
}

#define CHAR(name_, major_, minor_)                                                          \
    {                                                                                        \
        .name = "device-" name_, .title = "make and open " name_, .run = run_node, .args = { \
            S_IFCHR,                                                                         \
            major_,                                                                          \
            minor_                                                                           \
        }                                                                                    \
    }
#define BLOCK(name_, major_, minor_)                                                         \
    {                                                                                        \
        .name = "device-" name_, .title = "make and open " name_, .run = run_node, .args = { \
            S_IFBLK,                                                                         \
            major_,                                                                          \
            minor_                                                                           \
        }                                                                                    \
    }

/* clang-format off */
static const struct attempt devices[] = {
    CHAR("mem", 1, 1), CHAR("port", 1, 4), CHAR("kmsg", 1, 11), CHAR("fuse", 10, 229), CHAR("tun", 10, 200),
    CHAR("kvm", 10, 232), CHAR("loop-control", 10, 237), CHAR("btrfs-control", 10, 234),
    CHAR("console", 5, 1), CHAR("tty0", 4, 0), CHAR("host-ptmx", 5, 2), CHAR("vhost-net", 10, 238),
    BLOCK("sda", 8, 0), BLOCK("vda", 254, 0), BLOCK("loop0", 7, 0), BLOCK("nvme", 259, 0), BLOCK("dm-0", 253, 0),
    { .name = "devices-given", .title = "which devices are there", .run = run_given },
    { .name = "dev-change", .title = "change the shared /dev", .run = run_make_in_dev },
    { .name = "terminals", .title = "the host's terminals", .run = run_ptmx },
};
/* clang-format on */

const struct group group_devices = { "devices", devices, sizeof(devices) / sizeof(devices[0]) };
