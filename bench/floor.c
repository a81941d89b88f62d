#include "floor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "sample.h"

#define FLOOR_UID_BASE 0x10000000u /* far from real users and from Warren's own ranges */
#define FLOOR_UID_COUNT 65536u
#define FLOOR_LANE_RANGES 1000u /* of ids, in turn */
#define FLOOR_NAME_SIZE 32
#define FLOOR_PATH_SIZE 64
#define FLOOR_WAIT_MS 10000

#define FLOOR_NAMESPACES                                                                       \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | \
     CLONE_NEWCGROUP)

struct floor {
    int pool;
    bool btrfs;
    unsigned lane, round;
};

/* What the child could not do; sent up its socket, which exec closes. */
struct failure {
    const char *step; /* a literal: valid in the parent too, which is the same program */
    int code;
};

int floor_new(const char *pool, unsigned lane, struct floor **ret_floor, struct err *err)
{
    _cleanup_(floor_freep) struct floor *f = NULL;
    struct statfs fs;

    f = calloc(1, sizeof(*f));
    if (!f)
        return err_set(err, ENOMEM, "cannot allocate the floor");
    f->lane = lane;
    f->pool = open(pool, O_DIRECTORY | O_CLOEXEC);
    if (f->pool < 0)
        return err_set(err, errno, "cannot open pool '%s'", pool);
    if (fstatfs(f->pool, &fs) < 0)
        return err_set(err, errno, "cannot stat pool '%s'", pool);
    f->btrfs = fs.f_type == BTRFS_SUPER_MAGIC;
    *ret_floor = take_ptr(f);
    return 0;
}

void floor_free(struct floor *f)
{
    if (!f)
        return;
    if (f->pool >= 0)
        (void)close(f->pool);
    free(f);
}

/* ---- storage: one upper ---- */

static int upper_make(const struct floor *f, const char *name, int *ret_fd)
{
    _cleanup_fd_ int fd = -1;

    if (f->btrfs) {
        struct btrfs_ioctl_vol_args args = { 0 };

        (void)snprintf(args.name, sizeof(args.name), "%s", name);
        if (ioctl(f->pool, BTRFS_IOC_SUBVOL_CREATE, &args) < 0)
            return -errno;
    } else if (mkdirat(f->pool, name, 0755) < 0) {
        return -errno;
    }
    fd = openat(f->pool, name, O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (mkdirat(fd, "u", 0755) < 0 || mkdirat(fd, "w", 0755) < 0)
        return -errno;
    *ret_fd = take_fd(fd);
    return 0;
}

static void upper_remove(const struct floor *f, const char *name)
{
    struct btrfs_ioctl_vol_args args = { 0 };
    _cleanup_fd_ int fd = -1;

    (void)snprintf(args.name, sizeof(args.name), "%s", name);
    if (f->btrfs) {
        (void)ioctl(f->pool, BTRFS_IOC_SNAP_DESTROY, &args);
        return;
    }
    /* The programs run here write nothing: what overlay itself made is all there is. */
    fd = openat(f->pool, name, O_DIRECTORY | O_CLOEXEC);
    (void)unlinkat(fd, "w/work", AT_REMOVEDIR);
    (void)unlinkat(fd, "w", AT_REMOVEDIR);
    (void)unlinkat(fd, "u", AT_REMOVEDIR);
    (void)unlinkat(f->pool, name, AT_REMOVEDIR);
}

/* ---- the child: from a fresh set of namespaces to exec ---- */

static _Noreturn void child_fail(int sock, const char *step)
{
    struct failure fail = { step, errno };

    (void)fd_send_msg(sock, &fail, sizeof(fail), NULL, 0);
    _exit(1);
}

#define CHILD_TRY(call_)              \
    do {                              \
        if ((call_) < 0)              \
            child_fail(sock, #call_); \
    } while (0)

static void child_mounts(int sock)
{
    static const char *const nodes[][2] = {
        { "/dev/null", "dev/null" },       { "/dev/zero", "dev/zero" },
        { "/dev/full", "dev/full" },       { "/dev/random", "dev/random" },
        { "/dev/urandom", "dev/urandom" }, { "/dev/tty", "dev/tty" },
    };

    CHILD_TRY(mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL));
    CHILD_TRY(mount("sysfs", "sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL));
    CHILD_TRY(mount("tmpfs", "dev", "tmpfs", MS_NOSUID, "mode=755,size=64k"));
    CHILD_TRY(mkdir("dev/pts", 0755));
    CHILD_TRY(mkdir("dev/shm", 01777));
    CHILD_TRY(mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
                    "newinstance,ptmxmode=0666,mode=0620"));
    CHILD_TRY(mount("tmpfs", "dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "size=64m"));
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        CHILD_TRY(mknod(nodes[i][1], S_IFREG | 0644, 0));
        CHILD_TRY(mount(nodes[i][0], nodes[i][1], NULL, MS_BIND, NULL));
    }
}

static _Noreturn void child(int sock, int out, char *const argv[])
{
    int root = -1;
    size_t nfds = 0;
    char byte;

    if (fd_recv_msg(sock, &byte, 1, &root, 1, &nfds) != 1 || nfds != 1)
        child_fail(sock, "receive the root");
    /* Not by the C library, which would wait for the parent's other threads to do the same. */
    CHILD_TRY(syscall(SYS_setresgid, 0, 0, 0));
    CHILD_TRY(syscall(SYS_setresuid, 0, 0, 0));
    CHILD_TRY(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    CHILD_TRY(syscall(SYS_move_mount, root, "", AT_FDCWD, "/mnt", MOVE_MOUNT_F_EMPTY_PATH));
    CHILD_TRY(chdir("/mnt"));
    child_mounts(sock);
    CHILD_TRY(syscall(SYS_pivot_root, ".", "."));
    CHILD_TRY(umount2(".", MNT_DETACH));
    CHILD_TRY(chdir("/"));
    CHILD_TRY(dup2(out, STDOUT_FILENO));
    (void)execv(argv[0], argv);
    child_fail(sock, "exec");
}

/* ---- the parent: ids and the root filesystem ---- */

static int write_proc(pid_t pid, const char *file, const char *text)
{
    char path[FLOOR_PATH_SIZE];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    return fd_write_file_at(AT_FDCWD, path, text);
}

static int map_ids(const struct floor *f, pid_t pid)
{
    unsigned range = f->lane * FLOOR_LANE_RANGES + f->round % FLOOR_LANE_RANGES;
    char map[FLOOR_PATH_SIZE];
    int r;

    (void)snprintf(map, sizeof(map), "0 %u %u", FLOOR_UID_BASE + range * FLOOR_UID_COUNT,
                   FLOOR_UID_COUNT);
    r = write_proc(pid, "uid_map", map);
    return r < 0 ? r : write_proc(pid, "gid_map", map);
}

/* A detached copy of the mount at dirfd/path, its ids shifted into the user namespace. */
static int idmapped(int dirfd, const char *path, int userns)
{
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns };
    _cleanup_fd_ int fd = -1;

    fd = (int)syscall(SYS_open_tree, dirfd, path,
                      AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (fd < 0 || syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return -errno;
    return take_fd(fd);
}

static int set_layer(int fs, const char *key, int fd, const char *below)
{
    char path[FLOOR_PATH_SIZE];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d%s", fd, below);
    return (int)syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, path, 0);
}

/* Mounts the overlay and hands it to the child at once: only then are the layers' own mounts let
 * go, each of which waits for the kernel's other processors. */
static int give_root(const struct floor *f, pid_t pid, int upper_dir, int sock)
{
    char path[FLOOR_PATH_SIZE];
    _cleanup_fd_ int userns = -1, lower = -1, upper = -1, fs = -1, root = -1;

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    userns = open(path, O_RDONLY | O_CLOEXEC);
    if (userns < 0)
        return -errno;
    lower = idmapped(f->pool, "img", userns);
    if (lower < 0)
        return lower;
    upper = idmapped(upper_dir, "", userns);
    if (upper < 0)
        return upper;
    fs = (int)syscall(SYS_fsopen, "overlay", FSOPEN_CLOEXEC);
    if (fs < 0 || set_layer(fs, "lowerdir", lower, "") < 0 ||
        set_layer(fs, "upperdir", upper, "/u") < 0 || set_layer(fs, "workdir", upper, "/w") < 0 ||
        syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    root = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
    return root < 0 ? -errno : fd_send_msg(sock, "", 1, &root, 1);
}

static int read_line(int out)
{
    char text[256];
    ssize_t n;

    do {
        int r = fd_wait(out, POLLIN, FLOOR_WAIT_MS);

        if (r <= 0)
            return r < 0 ? r : -ETIMEDOUT;
        n = read(out, text, sizeof(text));
        if (n <= 0)
            return n < 0 ? -errno : -EPIPE;
    } while (text[n - 1] != '\n');
    return 0;
}

/* Everything but storage. The child is reaped, whatever happens. */
static int run_cell(struct floor *f, int upper, char *const argv[], double *ret_end,
                    struct err *err)
{
    struct clone_args args = { .flags = FLOOR_NAMESPACES, .exit_signal = SIGCHLD };
    _cleanup_fd_ int up = -1, down = -1, in = -1, out = -1;
    struct failure fail = { NULL, 0 };
    int socks[2], pipes[2], r;
    size_t nfds;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0)
        return err_set(err, errno, "cannot make a socket pair");
    up = socks[0];
    down = socks[1];
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    in = pipes[0];
    out = pipes[1];

    pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0)
        return err_set(err, errno, "cannot clone into new namespaces");
    if (pid == 0)
        child(down, out, argv);
    (void)close(take_fd(out));
    (void)close(take_fd(down));

    r = map_ids(f, pid);
    if (r < 0)
        err_set(err, -r, "cannot map ids");
    if (r >= 0) {
        r = give_root(f, pid, upper, up);
        if (r < 0)
            err_set(err, -r, "cannot mount the overlay");
    }
    if (r >= 0) {
        r = read_line(in);
        *ret_end = now_us();
        if (r < 0 && fd_recv_msg(up, &fail, sizeof(fail), NULL, 0, &nfds) == sizeof(fail))
            err_set(err, fail.code, "the child could not %s", fail.step);
        else if (r < 0)
            err_set(err, -r, "no output from '%s'", argv[0]);
    }
    if (r < 0)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r < 0 ? r : 0;
}

int floor_once(struct floor *f, char *const argv[], double *ret_us, struct err *err)
{
    char name[FLOOR_NAME_SIZE];
    _cleanup_fd_ int upper = -1;
    double start, end = 0;
    int r;

    (void)snprintf(name, sizeof(name), "cell-%u-%u", f->lane, f->round++);
    start = now_us();
    r = upper_make(f, name, &upper);
    if (r < 0)
        err_set(err, -r, "cannot make storage '%s'", name);
    else
        r = run_cell(f, upper, argv, &end, err);
    upper_remove(f, name);
    if (r < 0)
        return r;
    *ret_us = end - start;
    return 0;
}

int floor_life(struct floor *f, char *const argv[], double *ret_us, struct err *err)
{
    double start = now_us(), first;
    int r = floor_once(f, argv, &first, err);

    if (r >= 0)
        *ret_us = now_us() - start;
    return r;
}
