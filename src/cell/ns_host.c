#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <linux/securebits.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/id.h"
#include "cell/ns_boot.h"
#include "cell/ns_private.h"
#include "cell/ns_show.h"
#include "kernel/mount.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* newer than Debian 12's headers; older kernels refuse it */
#endif

/* Parts of /proc in which a process inside could read about the host, or switch something on it. Those that this host
 * has are found once; the kernel shows the same ones in every cell. Laid in this order. */
static const struct {
    enum ns_mask_kind kind;
    const char *path;
} known_masks[] = {
    { NS_HIDE_DIR, "proc/acpi" },
    { NS_HIDE_DIR, "proc/asound" },
    { NS_HIDE_DIR, "proc/bus" },
    { NS_HIDE_DIR, "proc/driver" },
    { NS_HIDE_DIR, "proc/dynamic_debug" },
    { NS_HIDE_DIR, "proc/fs" },
    { NS_HIDE_DIR, "proc/irq" },
    { NS_HIDE_DIR, "proc/mpt" },
    { NS_HIDE_DIR, "proc/pressure" },
    { NS_HIDE_DIR, "proc/scsi" },
    { NS_HIDE_DIR, "proc/tty" },
    { NS_HIDE_FILE, "proc/allocinfo" },
    { NS_HIDE_FILE, "proc/bootconfig" },
    { NS_HIDE_FILE, "proc/buddyinfo" },
    { NS_HIDE_FILE, "proc/config.gz" },
    { NS_HIDE_FILE, "proc/consoles" },
    { NS_HIDE_FILE, "proc/diskstats" },
    { NS_HIDE_FILE, "proc/interrupts" },
    { NS_HIDE_FILE, "proc/iomem" },
    { NS_HIDE_FILE, "proc/ioports" },
    { NS_HIDE_FILE, "proc/kallsyms" },
    { NS_HIDE_FILE, "proc/kcore" },
    { NS_HIDE_FILE, "proc/key-users" },
    { NS_HIDE_FILE, "proc/keys" },
    { NS_HIDE_FILE, "proc/kmsg" },
    { NS_HIDE_FILE, "proc/kpagecgroup" },
    { NS_HIDE_FILE, "proc/kpagecount" },
    { NS_HIDE_FILE, "proc/kpageflags" },
    { NS_HIDE_FILE, "proc/latency_stats" },
    { NS_HIDE_FILE, "proc/mdstat" },
    { NS_HIDE_FILE, "proc/modules" },
    { NS_HIDE_FILE, "proc/mtrr" },
    { NS_HIDE_FILE, "proc/pagetypeinfo" },
    { NS_HIDE_FILE, "proc/sched_debug" },
    { NS_HIDE_FILE, "proc/schedstat" },
    { NS_HIDE_FILE, "proc/slabinfo" },
    { NS_HIDE_FILE, "proc/softirqs" },
    { NS_HIDE_FILE, "proc/sysrq-trigger" },
    { NS_HIDE_FILE, "proc/timer_list" },
    { NS_HIDE_FILE, "proc/timer_stats" },
    { NS_HIDE_FILE, "proc/vmallocinfo" },
    { NS_HIDE_FILE, "proc/zoneinfo" },
    { NS_SHOW, "proc/cgroups" },
    { NS_SHOW, "proc/cmdline" },
    { NS_SHOW, "proc/loadavg" },
    { NS_SHOW, "proc/partitions" },
    { NS_SHOW, "proc/swaps" },
    { NS_SHOW, "proc/vmstat" },
    { NS_READONLY, "proc/sys" },
    { NS_HIDE_DIR, "proc/sys/dev" },
    { NS_SHOW, "proc/sys/fs" },
    { NS_SHOW, "proc/sys/kernel/pty" },
};

_Static_assert(ARRAY_LEN(known_masks) <= NS_MASKS_MAX, "none is left out");

static const char *over_it(enum ns_mask_kind kind, const char *path)
{
    switch (kind) {
    case NS_HIDE_DIR: return NS_SHOW_EMPTY;
    case NS_HIDE_FILE: return NS_SHOW_NOTHING;
    case NS_SHOW: return ns_show_name(path);
    case NS_READONLY: break;
    }
    return NULL;
}

/* A file of the host's root that others may not open needs no mask: no id inside is the host's root, and a capability
 * inside reaches no file of an id that has no name there. */
static bool is_closed(const struct stat *sb)
{
    return S_ISREG(sb->st_mode) && sb->st_uid == 0 && (sb->st_mode & S_IRWXO) == 0;
}

static void find_masks(struct ns_host *h)
{
    for (size_t i = 0; i < ARRAY_LEN(known_masks); i++) {
        struct ns_mask m = { known_masks[i].kind, known_masks[i].path, "" };
        char path[NS_PATH_SIZE];
        (void)snprintf(path, sizeof(path), "/%s", m.path);
        const char *over = over_it(m.kind, path);
        if (over)
            (void)snprintf(m.over, sizeof(m.over), NS_SHOW_DIR "/%s", over);
        struct stat sb;
        if (lstat(path, &sb) == 0 && !is_closed(&sb))
            h->masks[h->nmasks++] = m;
    }
}

/* ---- the shared directory: one small filesystem with a /dev and the masks, shared by all cells ---- */

struct node {
    const char *name;
    unsigned major, minor;
};
static const struct node nodes[] = {
    { "null", 1, 3 },   { "zero", 1, 5 },    { "full", 1, 7 },
    { "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
};
static const char *const links[][2] = {
    { "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" },
    { "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
    { "ptmx", "pts/ptmx" },
};
static const char *const dirs[] = { "pts", "shm", "mqueue" };

static int make_dev(int dev, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
        if (mknodat(dev, nodes[i].name, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)) <
                0 ||
            fchmodat(dev, nodes[i].name, 0666, 0) < 0)
            return err_set(err, errno, "cannot make device '%s'", nodes[i].name);
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        if (symlinkat(links[i][1], dev, links[i][0]) < 0)
            return err_set(err, errno, "cannot link '%s'", links[i][0]);
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (mkdirat(dev, dirs[i], 0755) < 0)
            return err_set(err, errno, "cannot make '%s'", dirs[i]);
    return 0;
}

static int open_in(int dir, const char *name, struct err *err)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_set(err, errno, "cannot open '%s' in the shared device directory", name)
                  : fd;
}

/* A small filesystem mounted at `name`, filled by `fill`, then read-only for good: a cell's copy
 * of the mount has the same flags, and needs no call to set them. */
static int furnish(int base, const char *name, const char *size, uint64_t attrs,
                   int (*fill)(int, struct err *), struct err *err)
{
    const struct mount_option options[] = { { "mode", "0755" }, { "size", size } };
    _cleanup_fd_ int fs = -1;
    int r = mount_new("tmpfs", options, ARRAY_LEN(options), attrs, &fs, err);
    if (r == 0)
        r = fill(fs, err);
    if (r == 0)
        r = mount_set_flags(fs, MOUNT_ATTR_RDONLY, err);
    if (r < 0)
        return r;
    if (mkdirat(base, name, 0755) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make '%s' in the shared device directory", name);
    return mount_place_at(fs, base, name, err);
}

/* Boot ids are made while cells are: this one stays writable, by root alone, and cells get their files through a second
 * mount of it that is read-only. Without a limit statfs(2) says nothing of how much is used, and so of how many cells
 * there are. */
static int make_boots(int base, struct err *err)
{
    static const struct mount_option options[] = { { "mode", "0755" },
                                                   { "size", "0" },
                                                   { "nr_inodes", "0" } };
    _cleanup_fd_ int fs = -1, shown = -1;
    int r = mount_new("tmpfs", options, ARRAY_LEN(options),
                      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NODEV, &fs, err);
    if (r == 0)
        r = mount_place_at(fs, base, NS_BOOT_DIR, err);
    if (r == 0)
        r = mount_clone(fs, "", &shown, err);
    if (r == 0)
        r = mount_set_flags(shown, MOUNT_ATTR_RDONLY, err);
    return r < 0 ? r : mount_place_at(shown, base, NS_BOOT_SHOWN, err);
}

/* For programs of the keeper's that remember things while the machine is up. */
static int make_cache(int base, struct err *err)
{
    static const struct mount_option options[] = { { "mode", "0700" }, { "size", "1m" } };
    _cleanup_fd_ int fs = -1;
    int r = mount_new("tmpfs", options, ARRAY_LEN(options), 0, &fs, err);
    return r < 0 ? r : mount_place_at(fs, base, "cache", err);
}

static int make_shared(const char *path, struct err *err)
{
    _cleanup_fd_ int base = open_in(AT_FDCWD, path, err);
    if (base < 0)
        return base;
    static const char *const hooks[] = { "root",  "proc",      "own-dev",    NS_OWN_SYS,
                                         "cache", NS_BOOT_DIR, NS_BOOT_SHOWN };
    for (size_t i = 0; i < ARRAY_LEN(hooks); i++) /* where a cell's child assembles its parts */
        if (mkdirat(base, hooks[i], 0711) < 0 && errno != EEXIST)
            return err_set(err, errno, "cannot make the shared device directory");
    int r = furnish(base, "dev", "64k", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, make_dev, err);
    if (r == 0)
        r = furnish(base, NS_SHOW_DIR, NS_SHOW_SIZE,
                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NODEV, ns_show_fill, err);
    if (r == 0)
        r = make_boots(base, err);
    return r == 0 ? make_cache(base, err) : r;
}

/* ---- init's binary ---- */

/* A sealed copy in memory: no file of the host's can be reached or changed through /proc/1/exe.
 * Executable but not readable, so the kernel lets nobody trace it, whatever they may inside. */
static int seal_init(const char *path, int *ret_fd, struct err *err)
{
    _cleanup_fd_ int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return err_set(err, errno, "cannot open '%s'", path);
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    _cleanup_fd_ int fd = memfd_create("warren-init", flags | MFD_EXEC);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("warren-init", flags);
    if (fd < 0)
        return err_set(err, errno, "cannot make a memory file");
    char chunk[65536];
    for (ssize_t n; (n = read(file, chunk, sizeof(chunk))) != 0;) {
        int r = n < 0 ? -errno : fd_write_full(fd, chunk, (size_t)n);
        if (r < 0)
            return err_set(err, -r, "cannot copy '%s'", path);
    }
    if (fchmod(fd, 0111) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return err_set(err, errno, "cannot seal warren-init");
    *ret_fd = take_fd(fd);
    return 0;
}

static uint64_t contents_id(int fd)
{
    unsigned char chunk[16384];
    uint64_t id = HASH_SEED;
    ssize_t n;
    for (off_t at = 0; (n = pread(fd, chunk, sizeof(chunk), at)) > 0; at += n)
        id = hash_more(id, chunk, (size_t)n);
    return id;
}

int ns_host_new(const char *init_path, const char *shared, struct ns_host **ret_host,
                struct err *err)
{
    _cleanup_(ns_host_freep) struct ns_host *h = calloc(1, sizeof(*h));
    if (!h)
        return err_set(err, ENOMEM, "cannot allocate the cell host");
    h->init_fd = h->boots = -1;
    /* mount_overlay changes the filesystem ids for a moment and must keep its capabilities. */
    if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0)
        return err_set(err, errno, "cannot set secure bits");
    int r = random_bytes(&h->cookie, sizeof(h->cookie));
    if (r < 0)
        return err_set(err, -r, "cannot get random bytes");
    r = seccomp_compile(&h->cookie, &h->filter, err);
    if (r == 0)
        r = seal_init(init_path, &h->init_fd, err);
    if (r == 0)
        r = make_shared(shared, err);
    if (r == 0 && chdir(shared) < 0)
        r = err_set(err, errno, "cannot enter '%s'", shared);
    if (r < 0)
        return r;
    h->boots = open_in(AT_FDCWD, NS_BOOT_DIR, err);
    if (h->boots < 0)
        return h->boots;
    h->init_id = contents_id(h->init_fd);
    find_masks(h);
    *ret_host = take_ptr(h);
    return 0;
}

static bool same_contents(int a, int b)
{
    char x[16384], y[16384];
    for (off_t at = 0;; at += (off_t)sizeof(x)) {
        ssize_t n = pread(a, x, sizeof(x), at), m = pread(b, y, sizeof(y), at);
        if (n != m || n < 0 || memcmp(x, y, (size_t)n) != 0)
            return false;
        if (n < (ssize_t)sizeof(x))
            return true;
    }
}

uint64_t ns_host_init_id(const struct ns_host *h)
{
    return h->init_id;
}

int ns_host_program(const struct ns_host *h, int fd, int *ret_fd, struct err *err)
{
    char path[32];
    if (same_contents(h->init_fd, fd)) {
        *ret_fd = fcntl(h->init_fd, F_DUPFD_CLOEXEC, 3);
        return *ret_fd < 0 ? err_set(err, errno, "cannot open warren-init") : 0;
    }
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return seal_init(path, ret_fd, err);
}

void ns_host_free(struct ns_host *h)
{
    if (!h)
        return;
    fd_close_all(&h->init_fd, 1);
    fd_close_all(&h->boots, 1);
    free(h->filter);
    free(h);
}
