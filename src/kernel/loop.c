#include "kernel/loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTACH_TRIES 64 /* others may take the free device before us */

static int find_attached(const struct stat *file, char path[LOOP_PATH_SIZE])
{
    DIR *d = opendir("/sys/block");
    if (!d)
        return -errno;
    int found = -ENOENT;
    for (struct dirent *e; found < 0 && (e = readdir(d));) {
        if (strncmp(e->d_name, "loop", 4) != 0)
            continue;
        if (snprintf(path, LOOP_PATH_SIZE, "/dev/%.20s", e->d_name) >= LOOP_PATH_SIZE)
            continue;
        _cleanup_fd_ int fd = open(path, O_RDWR | O_CLOEXEC);
        struct loop_info64 info;
        if (fd >= 0 && ioctl(fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_device == file->st_dev &&
            info.lo_inode == file->st_ino)
            found = take_fd(fd);
    }
    (void)closedir(d);
    return found;
}

int loop_attach(const char *file, char ret_path[LOOP_PATH_SIZE], int *ret_fd, struct err *err)
{
    _cleanup_fd_ int backing = open(file, O_RDWR | O_CLOEXEC);
    if (backing < 0)
        return err_set(err, errno, "cannot open '%s'", file);
    struct stat st;
    if (fstat(backing, &st) < 0)
        return err_set(err, errno, "cannot stat '%s'", file);
    int fd = find_attached(&st, ret_path);
    if (fd >= 0) {
        *ret_fd = fd;
        return 0;
    }
    _cleanup_fd_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control < 0)
        return err_set(err, errno, "cannot open /dev/loop-control (try `modprobe loop`)");
    for (int i = 0; i < ATTACH_TRIES; i++) {
        int n = ioctl(control, LOOP_CTL_GET_FREE);
        if (n < 0)
            return err_set(err, errno, "no free loop device");
        (void)snprintf(ret_path, LOOP_PATH_SIZE, "/dev/loop%d", n);
        _cleanup_fd_ int dev = open(ret_path, O_RDWR | O_CLOEXEC);
        if (dev < 0)
            return err_set(err, errno, "cannot open '%s'", ret_path);
        struct loop_config config = {
            .fd = (uint32_t)backing,
            .info = { .lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO },
        };
        if (ioctl(dev, LOOP_CONFIGURE, &config) == 0) {
            *ret_fd = take_fd(dev);
            return 0;
        }
        if (errno != EBUSY)
            return err_set(err, errno, "cannot attach '%s' to '%s'", file, ret_path);
    }
    return err_set(err, EBUSY, "every free loop device was taken before us");
}
