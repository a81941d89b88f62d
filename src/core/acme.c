#include "core/acme.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "net/host.h"

#define LOG_MODULE "acme"
#define RUN_MS 300000 /* an authority may take its time to look */
#define TICK_MS 200
#define SAID_MAX 4096
#define PEM_SIZE (64 * 1024)
#define ARGS_MAX 20
#define DIR_FD 3 /* as the program sees them */
#define HOOK_FD 4

static const char conf_path[] = "/proc/self/fd/3/conf", hook_path[] = "/proc/self/fd/4";

int acme_prepare(const struct acme *a, struct err *err)
{
    static const char *const parts[] = { "conf", "challenges" };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (mkdirat(a->dir_fd, parts[i], 0700) < 0 && errno != EEXIST)
            return err_set(err, errno, "cannot make the directory '%s' of ACME", parts[i]);
    return 0;
}

/* ---- the program ---- */

static void become(const struct acme *a, const char *const *args, int said_fd)
{
    char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", lang[] = "LC_ALL=C";
    char *env[] = { path, lang, NULL };
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    /* Out of the way of 3 and 4 first: one may be where the other is to be. */
    int said = fcntl(said_fd, F_DUPFD_CLOEXEC, 10), dir = fcntl(a->dir_fd, F_DUPFD_CLOEXEC, 10);
    int hook = fcntl(a->hook_fd, F_DUPFD_CLOEXEC, 10);
    if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(said, 1) < 0 || dup2(said, 2) < 0 ||
        dup2(dir, DIR_FD) < 0 || dup2(hook, HOOK_FD) < 0 || close_range(5, ~0u, 0) < 0)
        _exit(126);
    (void)execvpe("uacme", (char *const *)args, env);
    _exit(127);
}

/* The last line that was said. */
static void last_line(struct buf *said, char *out, size_t size)
{
    while (said->len > 0 && strchr("\r\n ", said->data[said->len - 1]))
        said->data[--said->len] = '\0';
    const char *line = said->len ? memrchr(said->data, '\n', said->len) : NULL;
    (void)snprintf(out, size, "%s", line ? line + 1 : said->len ? said->data : "");
}

static void hear(int fd, struct buf *said)
{
    char piece[1024];
    for (ssize_t n; (n = read(fd, piece, sizeof(piece))) > 0;) {
        if (said->len + (size_t)n > SAID_MAX)
            buf_drop_front(said, said->len < (size_t)n ? said->len : (size_t)n);
        (void)buf_append(said, piece, (size_t)n);
    }
}

/* Its exit status, or -errno. */
static int wait_for(pid_t pid, int fd, const _Atomic bool *stop, struct buf *said)
{
    int64_t until = clock_mono_ms() + RUN_MS;
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (atomic_load(stop) || clock_mono_ms() > until)
            (void)kill(-pid, SIGKILL); /* and its hook */
        (void)fd_wait(fd, POLLIN, TICK_MS);
        hear(fd, said);
        (void)poll(NULL, 0, TICK_MS / 10); /* an end of file is no reason to spin */
    }
    hear(fd, said);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

static int run(const struct acme *a, const char *const *args, const _Atomic bool *stop,
               struct buf *said, struct err *err)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_set(err, errno, "cannot start uacme");
    pid_t pid = fork();
    if (pid == 0) {
        (void)setpgid(0, 0);
        become(a, args, pair[1]);
    }
    (void)close(pair[1]);
    int r =
        pid < 0 ? err_set(err, errno, "cannot start uacme") : wait_for(pid, pair[0], stop, said);
    (void)close(pair[0]);
    if (r == 127)
        return err_set(err, ENOENT, "the program uacme is not there; install the package uacme");
    return r;
}

/* ---- what it is asked for ---- */

static int say_failure(struct buf *said, int status, const char *what, struct err *err)
{
    char line[200];
    last_line(said, line, sizeof(line));
    if (status < 0 && err->code)
        return status;
    return err_set(err, EIO, "%s: %s", what, line[0] ? line : "uacme ended without a word");
}

static int make_account(const struct acme *a, const _Atomic bool *stop, struct err *err)
{
    _cleanup_(buf_done) struct buf said = BUF_INIT(2 * SAID_MAX);
    struct stat st;
    if (fstatat(a->dir_fd, "conf/private/key.pem", &st, 0) == 0)
        return 0;
    const char *args[ARGS_MAX] = { "uacme", "-y",         "-c",  conf_path,
                                   "-a",    a->directory, "new", a->email };
    int r = run(a, args, stop, &said, err);
    return r == 0 ? 0 : say_failure(&said, r, "no account with the ACME directory", err);
}

static int append_file(int dir_fd, const char *path, struct buf *out)
{
    char text[PEM_SIZE];
    ssize_t n = fd_read_file_at(dir_fd, path, text, sizeof(text));
    int r = n < 0 ? (int)n : buf_append(out, text, (size_t)n);
    explicit_bzero(text, sizeof(text));
    return r;
}

int acme_issue(const struct acme *a, const char *name, const _Atomic bool *stop, struct buf *out,
               struct err *err)
{
    _cleanup_(buf_done) struct buf said = BUF_INIT(2 * SAID_MAX);
    char cert[HOST_SIZE + 32], key[HOST_SIZE + 32];
    int r = make_account(a, stop, err);
    if (r < 0)
        return r;
    /* -f: whether it is time is our decision. */
    const char *args[ARGS_MAX] = { "uacme", "-f",         "-o", "-t",      "EC",    "-c", conf_path,
                                   "-a",    a->directory, "-h", hook_path, "issue", name };
    r = run(a, args, stop, &said, err);
    if (r != 0)
        return say_failure(&said, r, "no certificate", err);
    (void)snprintf(cert, sizeof(cert), "conf/%s/cert.pem", name);
    (void)snprintf(key, sizeof(key), "conf/private/%s/key.pem", name);
    r = append_file(a->dir_fd, cert, out);
    if (r >= 0)
        r = append_file(a->dir_fd, key, out);
    return r < 0 ? err_set(err, -r, "what uacme wrote cannot be read") : 0;
}
