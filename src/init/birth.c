#include "init/birth.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "init/account.h"
#include "init/envp.h"
#include "init/proc.h"
#include "init/ps.h"

#define DEFAULT_ROWS 24
#define DEFAULT_COLS 80

static int null_fd = -1;

/* The child's ends of what birth() opens: ours only until the fork. */
struct ends {
    int fd[3];
};

static void ends_close(struct ends *e)
{
    for (int i = 0; i < 3; i++)
        if (e->fd[i] >= 0 && e->fd[i] != null_fd)
            (void)close(e->fd[i]);
}

int birth_setup(void)
{
    null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    return null_fd < 0 ? -errno : 0;
}

/* A pipe; `ours` is non-blocking, the other end is as programs expect it. */
static int open_pipe(bool we_read, int *ret_ours, int *ret_theirs)
{
    int fd[2];
    if (pipe2(fd, O_CLOEXEC) < 0)
        return -errno;
    int ours = we_read ? fd[0] : fd[1], theirs = we_read ? fd[1] : fd[0];
    int flags = O_NONBLOCK | (we_read ? O_RDONLY : O_WRONLY);
    if (fcntl(ours, F_SETFL, flags) < 0) {
        int r = -errno;
        fd_close_all(fd, 2);
        return r;
    }
    *ret_ours = ours;
    *ret_theirs = theirs;
    return 0;
}

static int open_pipes(struct proc *p, bool with_stdin, struct ends *e)
{
    int ours, r;
    e->fd[0] = null_fd;
    if (with_stdin) {
        r = open_pipe(false, &ours, &e->fd[0]);
        if (r < 0)
            return r;
        feed_open(p, ours);
    }
    for (int i = 1; i <= 2; i++) {
        r = open_pipe(true, &ours, &e->fd[i]);
        if (r < 0)
            return r;
        r = drain_open(p, ours, i == 1 ? WIRE_STDOUT : WIRE_STDERR);
        if (r < 0)
            return r;
    }
    return 0;
}

static int open_terminal(struct proc *p, const struct call *call, struct ends *e)
{
    /* Whoever is root inside may have put something else there: never wait for it. */
    _cleanup_fd_ int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (master < 0)
        return -errno;
    int unlock = 0;
    if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
        return -errno;
    e->fd[0] = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (e->fd[0] < 0)
        return -errno;
    struct winsize size = {
        .ws_row = call->rows ? (unsigned short)call->rows : DEFAULT_ROWS,
        .ws_col = call->cols ? (unsigned short)call->cols : DEFAULT_COLS,
    };
    if (ioctl(master, TIOCSWINSZ, &size) < 0)
        return -errno;
    p->terminal = true;
    return drain_open(p, take_fd(master), WIRE_PTY);
}

/* Where it runs: as named; relative to the home; the home itself. */
static char *workdir(const char *cwd, const char *home)
{
    char *path = NULL;
    if (cwd[0] == '/')
        return strdup(cwd);
    if (cwd[0] == '~' && (cwd[1] == '/' || cwd[1] == '\0'))
        cwd += cwd[1] == '/' ? 2 : 1;
    if (asprintf(&path, "%s%s%s", home, *cwd ? "/" : "", cwd) < 0)
        return NULL;
    return path;
}

/* argv as listings show it. */
static int keep_args(struct proc *p, const struct call *call)
{
    size_t n = 0, count = 0;
    while (count < call->argc && count < PS_ARGS_MAX && n < PS_ARGS_BYTES_MAX)
        n += strlen(call->argv[count++]) + 1;
    if (n > PS_ARGS_BYTES_MAX)
        n = PS_ARGS_BYTES_MAX;
    p->args = malloc(n);
    if (!p->args)
        return -ENOMEM;
    for (size_t i = 0; i < count && p->args_n < n; i++) {
        size_t len = strlen(call->argv[i]) + 1, left = n - p->args_n;
        memcpy(p->args + p->args_n, call->argv[i], len < left ? len : left);
        p->args_n += len < left ? len : left;
    }
    p->args[n - 1] = '\0';
    return 0;
}

static int find_account(const char *spec, const struct account **ret_a, struct err *err)
{
    int r = account_lookup(spec, ret_a);
    if (r == -ENOENT)
        return err_fail(err, FAIL_USER_NOT_FOUND, "there is no user '%s'", spec);
    if (r == -ESRCH)
        return err_fail(err, FAIL_USER_NOT_FOUND, "there is no group as in '%s'", spec);
    if (r < 0)
        return err_fail(err, FAIL_OUT_OF_MEMORY, "no memory to look up '%s'", spec);
    return 0;
}

int birth(struct proc *p, const struct call *call, struct err *err)
{
    _cleanup_(ends_close) struct ends e = { { -1, -1, -1 } };
    _cleanup_free_ char **envp = NULL;
    const struct account *who;
    bool terminal = (call->flags & WIRE_F_PTY) != 0;
    int r;

    r = find_account(call->user, &who, err);
    if (r < 0)
        return r;
    r = envp_build(call->env, call->envc, who, terminal, &envp);
    if (r == 0)
        r = keep_args(p, call);
    p->user = strdup(*call->user ? call->user : who->name);
    p->label = call_has(call, WIRE_T_LABEL) ? strdup(call->label) : NULL;
    p->cwd = workdir(call->cwd, who->home);
    if (r < 0 || !p->user || !p->cwd || (call_has(call, WIRE_T_LABEL) && !p->label))
        return err_fail(err, FAIL_OUT_OF_MEMORY, "no memory to start a process");

    r = terminal ? open_terminal(p, call, &e)
                 : open_pipes(p, (call->flags & WIRE_F_STDIN) != 0, &e);
    if (r < 0)
        return err_set(err, -r, "cannot open %s: %s", terminal ? "a terminal" : "pipes",
                       strerror(-r));
    r = family_new(&p->family);
    if (r < 0)
        return err_set(err, -r, "cannot make a group: %s", strerror(-r));

    struct launch l = {
        .argv = call->argv,
        .envp = envp,
        .cwd = p->cwd,
        .cwd_or_root = call->cwd[0] == '\0',
        .who = who,
        .stdio = { e.fd[0], terminal ? e.fd[0] : e.fd[1], terminal ? e.fd[0] : e.fd[2] },
        .terminal = terminal,
        .own = { e.fd[0] != null_fd, !terminal, !terminal },
        .nofile = call->nofile,
        .family = &p->family,
    };
    int report;
    p->pid = launch(&l, &report);
    if (p->pid < 0)
        return launch_explain((struct launch_report){ 0, -p->pid }, call->argv[0], p->cwd, err);
    p->report_watch.fd = report;
    /* After the fork: the child is on its way while we do this. */
    drain_listen(p, false);
    return 0;
}
