#include "bucket/room.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sanitized.h"
#include "bucket/relay.h"
#include "kernel/mount.h"
#include "kernel/seccomp.h"

#define SPACE "32m"                            /* this program, and the key */
#define MEMORY_MAX (2ull * 1024 * 1024 * 1024) /* of addresses: threads' stacks count whole */
#define THREADS_MAX 128
#define FILES_MAX 4096
#define KEY_FILE "/key"
#define PLACE "/mnt"
#define OPTIONS_MAX 32
#define OPTION_SIZE 512

/* What is shown there of the host. */
static const struct thing {
    const char *host, *path;
    bool directory, needed, device;
} things[] = {
    { "/usr", "/usr", true, true, false },
    { "/etc/ssl", "/etc/ssl", true, false, false },
    { "/etc/mime.types", "/etc/mime.types", false, false, false },
    { "/dev/null", "/dev/null", false, true, true },
    { "/dev/urandom", "/dev/urandom", false, true, true },
#if SANITIZED /* whose run-time looks itself up there */
    { "/proc", "/proc", true, true, false },
#endif
};

static int clone_thing(const struct thing *t, int *ret_fd, struct err *err)
{
    _cleanup_fd_ int at = open(t->host, O_PATH | O_CLOEXEC), mount = -1;
    if (at < 0)
        return t->needed ? err_set(err, errno, "cannot open '%s'", t->host) : 0;
    int r = mount_clone(at, "", &mount, err);
    if (r == 0)
        r = mount_set_flags(mount,
                            MOUNT_ATTR_NOSUID | MOUNT_ATTR_RDONLY |
                                (t->device ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV),
                            err);
    if (r == 0)
        *ret_fd = take_fd(mount);
    return r;
}

static int place_thing(const struct thing *t, int mount, struct err *err)
{
    if (t->directory ? mkdir(t->path, 0755) < 0 && errno != EEXIST
                     : access(t->path, F_OK) < 0 && mknod(t->path, S_IFREG | 0644, 0) < 0)
        return err_set(err, errno, "cannot make '%s'", t->path);
    return mount_place_at(mount, AT_FDCWD, t->path, err);
}

static int change_root(struct err *err)
{
    static const struct mount_option space[] = { { "size", SPACE }, { "mode", "0755" } };
    int mounts[ARRAY_LEN(things)];
    _cleanup_fd_ int root = -1;
    int r = mount_new("tmpfs", space, ARRAY_LEN(space), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &root,
                      err);
    for (size_t i = 0; i < ARRAY_LEN(things) && r == 0; i++) {
        mounts[i] = -1;
        r = clone_thing(&things[i], &mounts[i], err); /* in the namespace they belong to */
    }
    if (r == 0 && (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) < 0 ||
                   mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
        r = err_set(err, errno, "cannot leave the host's namespaces");
    if (r == 0)
        r = mount_place_at(root, AT_FDCWD, "/proc", err); /* a directory every host has */
    if (r < 0)
        return r;
    if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0 || mkdir("/etc", 0755) < 0 || mkdir("/dev", 0755) < 0 ||
        symlink("usr/bin", "/bin") < 0 || symlink("usr/lib", "/lib") < 0 ||
        symlink("usr/lib64", "/lib64") < 0)
        return err_set(err, errno, "cannot change the root");
    for (size_t i = 0; i < ARRAY_LEN(things) && r == 0; i++)
        if (mounts[i] >= 0)
            r = place_thing(&things[i], mounts[i], err);
    return r;
}

/* This program under that name: a copy, since where it was started from may be out of sight. */
static int place_helper(int self, struct err *err)
{
    static const struct thing helper = { "/helper", "/usr/bin/fusermount", false, true, false };
    _cleanup_fd_ int to = open(helper.host, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755), at = -1;
    struct stat sb;
    off_t done = 0;
    if (to < 0 || fstat(self, &sb) < 0 || fchmod(to, 0755) < 0)
        return err_set(err, errno, "cannot copy this program");
    while (done < sb.st_size)
        if (sendfile(to, self, &done, (size_t)(sb.st_size - done)) <= 0)
            return err_set(err, errno, "cannot copy this program");
    (void)close(take_fd(to)); /* what is open for writing is not executed */
    int r = clone_thing(&helper, &at, err);
    return r < 0 ? r : place_thing(&helper, at, err);
}

/* Where what is being written lies until it is stored. */
static int place_spool(int mount, uid_t uid, struct err *err)
{
    int r = mount_place_at(mount, AT_FDCWD, "/tmp", err);
    if (r == 0 && (chown("/tmp", uid, uid) < 0 || chmod("/tmp", 0700) < 0))
        r = err_set(err, errno, "cannot hand the spool over");
    return r;
}

static int furnish(const struct bucket_config *c, uid_t uid, struct err *err)
{
    char key[BUCKET_KEY_SIZE + BUCKET_SECRET_SIZE + 2];
    int n = snprintf(key, sizeof(key), "%s:%s\n", c->access_key, c->secret);
    _cleanup_fd_ int fd = open(KEY_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
    int r = fd < 0 || fchown(fd, uid, uid) < 0 ? -errno : fd_write_full(fd, key, (size_t)n);
    explicit_bzero(key, sizeof(key));
    if (r == 0 && (mkdir("/tmp", 0700) < 0 || mkdir(PLACE, 0755) < 0 || chown(PLACE, uid, uid) < 0))
        r = -errno;
    return r < 0 ? err_set(err, -r, "cannot furnish the room of s3fs") : 0;
}

int room_drop(uid_t uid, struct err *err)
{
    const struct rlimit none = { 0, 0 }, files = { FILES_MAX, FILES_MAX };
    const struct rlimit threads = { THREADS_MAX, THREADS_MAX };
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    const struct __user_cap_data_struct none_of[2] = { 0 };
    struct seccomp_cookie cookie;
    struct sock_fprog *filter = NULL;
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)setrlimit(RLIMIT_NOFILE, &files);
    if (getrandom(&cookie, sizeof(cookie), 0) != sizeof(cookie))
        return err_set(err, EIO, "cannot get random bytes");
    int r = seccomp_compile(&cookie, &filter, err);
    if (r < 0)
        return r;
    if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0 ||
        syscall(SYS_capset, &head, none_of) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        r = err_set(err, errno, "cannot become a user without rights");
    if (r == 0 && (getuid() != uid || geteuid() != uid || getgid() != uid || setuid(0) == 0))
        r = err_set(err, EPERM, "still have rights");
    (void)setrlimit(RLIMIT_NPROC, &threads);
#if !SANITIZED /* which maps terabytes of shadow */
    const struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };
    (void)setrlimit(RLIMIT_AS, &memory);
    if (r == 0) {
        r = seccomp_install(filter);
        if (r < 0)
            r = err_set(err, -r, "cannot install the system call filter");
    }
#endif
    free(filter);
    return r;
}

struct words {
    char text[OPTIONS_MAX][OPTION_SIZE];
    char *argv[2 * OPTIONS_MAX + 8];
    size_t n, argc;
};

static void word(struct words *w, const char *text)
{
    w->argv[w->argc++] = (char *)(uintptr_t)text;
    w->argv[w->argc] = NULL;
}

static _printf_(2, 3) void option(struct words *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(w->text[w->n], OPTION_SIZE, fmt, ap);
    va_end(ap);
    word(w, "-o");
    word(w, w->text[w->n++]);
}

static void say_all(const struct bucket_config *c, uid_t files_uid, struct words *w)
{
    static char what[BUCKET_NAME_SIZE + BUCKET_PREFIX_SIZE + 2];
    (void)snprintf(what, sizeof(what), "%s%s%s", c->bucket, *c->prefix ? ":/" : "", c->prefix);
    word(w, "s3fs");
    word(w, what);
    word(w, PLACE);
    word(w, "-f");
    option(w, "url=http%s://%s:%u", c->tls ? "s" : "", c->host, c->port);
    option(w, "endpoint=%s", c->region);
    option(w, "passwd_file=" KEY_FILE);
    option(w, "uid=%u", files_uid); /* root's inside; everybody there may do everything */
    option(w, "gid=%u", files_uid);
    option(w, "umask=0000");
    option(w, "allow_other");
    option(w, "auto_unmount"); /* so that it asks `fusermount` at once */
    option(w, "sigv4");
    option(w, "tmpdir=/tmp");
    option(w, "max_dirty_data=1024"); /* MiB: then it is stored, and its room is free again */
    option(w, "connect_timeout=10");
    option(w, "readwrite_timeout=30");
    option(w, "retries=2");
    option(w, "max_stat_cache_size=10000");
    option(w, "stat_cache_expire=10"); /* what others write is seen by then */
    option(w, "enable_noobj_cache");
    option(w, "multipart_size=10");
    option(w, "parallel_count=4");
    option(w, "dbglevel=crit");
    if (c->path_style)
        option(w, "use_path_request_style");
}

int room_run(const struct bucket_config *c, uid_t uid, uid_t files_uid, struct err *err)
{
    static char proxy[] = "all_proxy=socks5h://127.0.0.1:1080", path[] = "PATH=/usr/bin";
    static char *environment[] = { proxy, path, NULL };
    static struct words w;
    _Static_assert(RELAY_PORT == 1080, "the environment says so");
    say_all(c, files_uid, &w);
    _cleanup_fd_ int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    _cleanup_fd_ int spool = -1;
    int r = self < 0 ? err_set(err, errno, "cannot open this program")
                     : mount_clone(ROOM_SPOOL_FD, "", &spool, err);
    if (r == 0)
        r = mount_set_flags(spool, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
    if (r == 0)
        r = change_root(err);
    if (r == 0)
        r = place_helper(self, err);
    if (r == 0)
        r = furnish(c, uid, err);
    if (r == 0)
        r = place_spool(spool, uid, err);
    if (r == 0)
        r = room_drop(uid, err);
    if (r < 0)
        return r;
    /* After the change of user, which takes it back; and sent in the parent's name. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || fd_wait(ROOM_PARENT_FD, POLLIN, 0) != 0)
        return err_set(err, errno, "cannot be bound to the relay's life");
    (void)execve("/usr/bin/s3fs", w.argv, environment);
    return err_set(err, errno, "cannot run s3fs (install the package s3fs)");
}

int room_hand_over(void)
{
    const char *at = getenv("_FUSE_COMMFD");
    int fuse = ROOM_FUSE_FD;
    char *end = NULL;
    long fd = at ? strtol(at, &end, 10) : -1;
    if (fd < 0 || fd > FILES_MAX || *end) /* `fusermount -u`, at the end: the kernel does that */
        return 0;
    return fd_send_msg((int)fd, "", 1, &fuse, 1) < 0;
}
