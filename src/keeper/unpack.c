#include "keeper/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/mount.h"

#define READ_BLOCK (256 * 1024)
#define ENTRIES_MAX 5000000                /* a large desktop image has about a million */
#define ID_MAX 65535                       /* what fits in a sandbox's range */
#define MEMORY_MAX (1024ull * 1024 * 1024) /* an xz dictionary can ask for 4 GiB */

#define DISK_FLAGS                                                                                 \
    (ARCHIVE_EXTRACT_OWNER | ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_XATTR | \
     ARCHIVE_EXTRACT_UNLINK | ARCHIVE_EXTRACT_SECURE_NODOTDOT | ARCHIVE_EXTRACT_SPARSE |           \
     ARCHIVE_EXTRACT_SAFE_WRITES)

static const int kept_caps[] = {
    CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_SETFCAP,
};

static int confine(int dir_fd, struct err *err)
{
    _cleanup_fd_ int root = -1;
    int r = mount_clone(dir_fd, "", &root, err); /* in the namespace the directory belongs to */
    if (r < 0)
        return r;
    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_set(err, errno, "cannot leave the host's namespaces");
    r = mount_place_at(root, AT_FDCWD, "/proc", err); /* a directory every host has */
    if (r < 0)
        return r;
    if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0)
        return err_set(err, errno, "cannot change the root");
#ifndef __SANITIZE_ADDRESS__ /* which maps terabytes of shadow */
    struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };
    (void)setrlimit(RLIMIT_AS, &memory);
#endif

    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(kept_caps); i++) {
        data[kept_caps[i] / 32].permitted |= 1u << (kept_caps[i] % 32);
        data[kept_caps[i] / 32].effective |= 1u << (kept_caps[i] % 32);
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &head, data) < 0)
        return err_set(err, errno, "cannot drop capabilities");
    return 0;
}

static int refuse(struct archive *a, const char *doing, struct err *err)
{
    const char *why = archive_error_string(a);
    int code = archive_errno(a);
    if (code == ENOSPC || code == EDQUOT)
        return err_name(err, ENOSPC, "no_space", "the image does not fit");
    return err_name(err, EINVAL, "invalid_image", "%s: %s", doing, why ? why : "damaged archive");
}

static bool leads_out(const char *path)
{
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return true;
        p += n;
        p += strspn(p, "/");
    }
    return false;
}

/* 1: extract it; 0: leave it out; below zero: the archive is not to be trusted. */
static int judge(struct archive_entry *entry, struct err *err)
{
    const char *path = archive_entry_pathname(entry);
    if (!path)
        return err_name(err, EINVAL, "invalid_image", "an entry has no name");
    while (*path == '/')
        path++;
    if (strncmp(path, "./", 2) == 0)
        path += 2;
    if (*path == '\0' || strcmp(path, ".") == 0) {
        archive_entry_set_pathname(entry, ".");
        return 1;
    }
    const char *target = archive_entry_hardlink(entry);
    if (leads_out(path) || (target && leads_out(target)))
        return err_name(err, EINVAL, "invalid_image", "'%.200s' leads out of the image", path);
    if (archive_entry_uid(entry) < 0 || archive_entry_uid(entry) > ID_MAX ||
        archive_entry_gid(entry) < 0 || archive_entry_gid(entry) > ID_MAX)
        return err_name(err, EINVAL, "invalid_image", "'%.200s' belongs to an id over %d", path,
                        ID_MAX);
    mode_t type = archive_entry_filetype(entry);
    if (type == AE_IFCHR || type == AE_IFBLK || type == AE_IFSOCK)
        return 0; /* a sandbox has a /dev of its own */
    char *copy = strdup(path);
    if (!copy)
        return err_set(err, ENOMEM, "out of memory");
    archive_entry_copy_pathname(entry, copy);
    free(copy);
    const char *link = archive_entry_hardlink(entry);
    if (link) {
        while (*link == '/')
            link++;
        copy = strdup(link);
        if (copy)
            archive_entry_copy_hardlink(entry, copy);
        free(copy);
    }
    return 1;
}

/* Not archive_read_extract2: it turns an entry that cannot be made into a mere warning. */
static int extract_entry(struct archive *in, struct archive *out, struct archive_entry *entry,
                         struct err *err)
{
    const char *path = archive_entry_pathname(entry);
    if (archive_write_header(out, entry) < ARCHIVE_WARN)
        return refuse(out, path, err);
    for (;;) {
        const void *block;
        size_t size;
        la_int64_t offset;
        int a = archive_read_data_block(in, &block, &size, &offset);
        if (a == ARCHIVE_EOF)
            break;
        if (a < ARCHIVE_WARN)
            return refuse(in, path, err);
        if (archive_write_data_block(out, block, size, offset) < ARCHIVE_WARN)
            return refuse(out, path, err);
    }
    return archive_write_finish_entry(out) < ARCHIVE_WARN ? refuse(out, path, err) : 0;
}

static int extract(int tar_fd, struct err *err)
{
    struct archive *in = archive_read_new(), *out = archive_write_disk_new();
    int r = 0;
    if (!in || !out) {
        r = err_set(err, ENOMEM, "out of memory");
        goto done;
    }
    (void)archive_read_support_filter_gzip(in);
    (void)archive_read_support_filter_zstd(in);
    (void)archive_read_support_filter_xz(in);
    (void)archive_read_support_filter_bzip2(in);
    (void)archive_read_support_format_tar(in);
    (void)archive_write_disk_set_options(out, DISK_FLAGS);
    if (archive_read_open_fd(in, tar_fd, READ_BLOCK) != ARCHIVE_OK) {
        r = refuse(in, "not a tar archive", err);
        goto done;
    }
    uint64_t entries = 0;
    for (;;) {
        struct archive_entry *entry;
        int a = archive_read_next_header(in, &entry);
        if (a == ARCHIVE_EOF)
            break;
        if (a < ARCHIVE_WARN) {
            r = refuse(in, "cannot read the archive", err);
            goto done;
        }
        if (++entries > ENTRIES_MAX) {
            r = err_name(err, EINVAL, "invalid_image", "more than %d entries", ENTRIES_MAX);
            goto done;
        }
        r = judge(entry, err);
        if (r < 0)
            goto done;
        if (r == 0)
            continue;
        r = extract_entry(in, out, entry, err);
        if (r < 0)
            goto done;
    }
    if (entries == 0)
        r = err_name(err, EINVAL, "invalid_image", "the archive is empty");
    else if (archive_write_close(out) < ARCHIVE_WARN)
        r = refuse(out, "cannot finish", err);
done:
    (void)archive_read_free(in);
    (void)archive_write_free(out);
    return r;
}

static int check_tree(struct err *err)
{
    static const char *const needed[] = { "dev", "proc", "sys", "tmp", "etc" };
    for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
        struct stat st;
        mode_t mode = strcmp(needed[i], "tmp") == 0 ? 01777 : 0755;
        if (mkdir(needed[i], mode) == 0) {
            (void)chmod(needed[i], mode);
            continue;
        }
        if (lstat(needed[i], &st) < 0 || !S_ISDIR(st.st_mode))
            return err_name(err, EINVAL, "invalid_image", "'/%s' is not a directory", needed[i]);
    }
    if (chown(".", 0, 0) < 0 || chmod(".", 0755) < 0)
        return err_set(err, errno, "cannot own the image's root");
    return 0;
}

int unpack_start(int tar_fd, int dir_fd, pid_t *ret_pid, int *ret_report_fd, struct err *err)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        struct err e = ERR_INIT;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)umask(0);
        int fds[] = { tar_fd, report[1], dir_fd };
        if (fd_keep_only(fds, ARRAY_LEN(fds)) < 0)
            _exit(1);
        int out = fds[1], r = confine(fds[2], &e);
        (void)close(fds[2]);
        if (r == 0)
            r = extract(fds[0], &e);
        if (r == 0)
            r = check_tree(&e);
        struct unpack_report rep = { .code = e.code };
        (void)snprintf(rep.what, sizeof(rep.what), "%s", e.what ? e.what : "");
        (void)snprintf(rep.msg, sizeof(rep.msg), "%s", e.msg);
        (void)fd_write_full(out, &rep, sizeof(rep));
        _exit(r < 0 ? 1 : 0);
    }
    (void)close(report[1]);
    if (pid < 0) {
        (void)close(report[0]);
        return err_set(err, errno, "cannot start unpacking");
    }
    *ret_pid = pid;
    *ret_report_fd = report[0];
    return 0;
}
