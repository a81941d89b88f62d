#include "cli/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cli/object.h"
#include "cli/place.h"
#include "cli/units.h"
#include "cli/xmem.h"

#define PROGRESS_EVERY_MS 100

struct flow {
    int fd;
    int64_t done, total;
    int64_t started_ms, shown_ms;
    bool progress;
};

static void show(struct flow *f)
{
    char done[UNIT_TEXT_MAX], total[UNIT_TEXT_MAX], rate[UNIT_TEXT_MAX];
    int64_t now = clock_mono_ms(), took = now - f->started_ms;
    if (!f->progress || now - f->shown_ms < PROGRESS_EVERY_MS)
        return;
    f->shown_ms = now;
    (void)size_text(f->done, done);
    (void)size_text(f->done * 1000 / (took > 0 ? took : 1), rate);
    if (f->total > 0)
        (void)fprintf(stderr, "\r%3d%%  %s of %s  %s/s\x1b[K", (int)(f->done * 100 / f->total),
                      done, size_text(f->total, total), rate);
    else
        (void)fprintf(stderr, "\r%s  %s/s\x1b[K", done, rate);
}

static ssize_t on_source(void *arg, void *p, size_t n)
{
    struct flow *f = arg;
    ssize_t r;
    do
        r = read(f->fd, p, n);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return -errno;
    f->done += r;
    show(f);
    return r;
}

static int on_bytes(void *arg, const void *p, size_t n)
{
    struct flow *f = arg;
    int r = fd_write_full(f->fd, p, n);
    f->done += (int64_t)n;
    show(f);
    return r;
}

static int perform(const struct transfer *t, struct request *call, struct flow *f, struct err *err)
{
    struct client *client = cli_client(t->cli, err);
    if (!client)
        return -EIO;
    f->started_ms = clock_mono_ms();
    f->progress = !t->quiet && !t->cli->json && isatty(STDERR_FILENO);
    call->arg = f;
    call->timeout_s = -1;
    int r = client_perform(client, call, err);
    if (f->shown_ms)
        (void)fprintf(stderr, "\r\x1b[K");
    request_done(call);
    return r;
}

int transfer_put(const struct transfer *t, const char *sandbox, const char *path, int fd,
                 int64_t total, const char *mode, bool append, struct err *err)
{
    char *query = files_path(sandbox, "", path, t->user);
    if (mode)
        query = api_query(query, "mode", mode);
    if (append)
        query = api_query(query, "append", "true");
    _cleanup_free_ char *url = query;
    struct flow f = { .fd = fd, .total = total };
    struct request call = { .method = "PUT",
                            .path = url,
                            .source = on_source,
                            .source_len = total,
                            .body_type = "application/octet-stream" };
    return perform(t, &call, &f, err);
}

int transfer_get(const struct transfer *t, const char *sandbox, const char *path, int fd,
                 int64_t total, struct err *err)
{
    _cleanup_free_ char *url = files_path(sandbox, "", path, t->user);
    struct flow f = { .fd = fd, .total = total };
    struct request call = { .method = "GET", .path = url, .sink = on_bytes };
    return perform(t, &call, &f, err);
}

int transfer_get_tar(const struct transfer *t, const char *sandbox, const char *path, int fd,
                     struct err *err)
{
    _cleanup_free_ char *url =
        api_query(files_path(sandbox, "archive", path, t->user), "format", "tar");
    struct flow f = { .fd = fd, .total = -1 };
    struct request call = { .method = "GET", .path = url, .sink = on_bytes };
    return perform(t, &call, &f, err);
}

int transfer_put_tar(const struct transfer *t, const char *sandbox, const char *path, int fd,
                     struct err *err)
{
    _cleanup_free_ char *url = files_path(sandbox, "archive", path, t->user);
    struct flow f = { .fd = fd, .total = -1 };
    struct request call = { .method = "PUT",
                            .path = url,
                            .source = on_source,
                            .source_len = -1,
                            .body_type = "application/x-tar" };
    return perform(t, &call, &f, err);
}

static int put_dir(const struct transfer *t, const char *dir, const char *sandbox, const char *path,
                   struct err *err)
{
    int fd = -1;
    pid_t pid = 0;
    int r = tar_start(false, dir, &fd, &pid, err);
    if (r < 0)
        return r;
    r = transfer_put_tar(t, sandbox, path, fd, err);
    (void)close(fd);
    int ended = tar_wait(pid, r < 0 ? NULL : err);
    return r < 0 ? r : ended;
}

int transfer_put_path(const struct transfer *t, const char *from, const char *sandbox,
                      const char *path, struct err *err)
{
    struct stat st;
    char mode[8];
    _cleanup_fd_ int fd = open(from, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, errno, "cannot open '%s': %s", from, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return put_dir(t, from, sandbox, path, err);
    (void)snprintf(mode, sizeof(mode), "%04o", (unsigned)(st.st_mode & 0777));
    bool regular = S_ISREG(st.st_mode);
    return transfer_put(t, sandbox, path, fd, regular ? st.st_size : -1, regular ? mode : NULL,
                        false, err);
}

/* ---- tar ---- */

int tar_start(bool unpack, const char *dir, int *ret_fd, pid_t *ret_pid, struct err *err)
{
    const char *pack_argv[] = { "tar", "-C", dir, "-c", "-f", "-", ".", NULL };
    const char *unpack_argv[] = { "tar", "-C", dir, "-x", "-f", "-", NULL };
    posix_spawn_file_actions_t fa;
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot make a pipe");
    int ours = fds[unpack ? 1 : 0], theirs = fds[unpack ? 0 : 1];
    int r = posix_spawn_file_actions_init(&fa);
    if (r == 0) {
        r = posix_spawn_file_actions_adddup2(&fa, theirs, unpack ? STDIN_FILENO : STDOUT_FILENO);
        if (r == 0)
            r = posix_spawnp(ret_pid, "tar", &fa, NULL,
                             (char *const *)(uintptr_t)(unpack ? unpack_argv : pack_argv), environ);
        (void)posix_spawn_file_actions_destroy(&fa);
    }
    (void)close(theirs);
    if (r != 0) {
        (void)close(ours);
        return err_set(err, r, "cannot start tar, which copies directories: %s", strerror(r));
    }
    *ret_fd = ours;
    return 0;
}

int tar_wait(pid_t pid, struct err *err)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_set(err, errno, "cannot wait for tar");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(err, EIO, "tar failed; what it said is above");
    return 0;
}
