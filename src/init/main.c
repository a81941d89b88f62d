/* warren-init: pid 1 of a sandbox. Reads what it was started with, gets out of the way of
 * signals, and turns rounds: hear, reap, tick, answer. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "init/birth.h"
#include "init/family.h"
#include "init/launch.h"
#include "init/ops.h"
#include "init/park.h"
#include "init/peer.h"
#include "init/poller.h"
#include "init/proc.h"
#include "init/ps.h"
#include "init/sweep.h"

#define COOKIE_VARIABLE "WARREN_CLONE_COOKIE"
#define SIGNALS_MAX 16 /* read at once */
#define NOISE_MS 20    /* the window in which NOISE_MAX unwanted signals may come */
#define NOISE_MAX 64

struct options {
    int listen_fd, oom_fd, group_fd;
    int procs_fds[LAUNCH_PROCS_MAX];
    size_t procs_n;
};

static _Noreturn void die(const char *what, int r)
{
    (void)fprintf(stderr, "warren-init: %s: %s\n", what, strerror(-r));
    _exit(1);
}

static int parse_fd(const char *text)
{
    char *end;
    long fd = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || fd < 0 || fd > INT32_MAX || fcntl((int)fd, F_GETFD) < 0)
        die(text, -EBADF);
    return (int)fd;
}

static struct options parse_options(int argc, char **argv)
{
    struct options o = { .listen_fd = -1, .oom_fd = -1, .group_fd = -1 };
    const struct {
        const char *name;
        int *one; /* NULL: it may come several times */
    } table[] = {
        { "--listen", &o.listen_fd },
        { "--oom", &o.oom_fd },
        { "--group", &o.group_fd },
        { "--procs", NULL },
    };
    for (int i = 1; i < argc; i += 2) {
        size_t k = 0;
        while (k < ARRAY_LEN(table) && strcmp(argv[i], table[k].name) != 0)
            k++;
        if (k == ARRAY_LEN(table) || i + 1 == argc || o.procs_n == LAUNCH_PROCS_MAX)
            die(argv[i], -EINVAL);
        int fd = parse_fd(argv[i + 1]);
        if (table[k].one)
            *table[k].one = fd;
        else
            o.procs_fds[o.procs_n++] = fd;
    }
    if (o.listen_fd < 0)
        die("--listen is needed", -EINVAL);
    return o;
}

/* Two numbers in hex with a colon between them. Wiped where it stood: what we fork has a copy of
 * our memory until it execs. */
static bool take_cookie(uint64_t ret_cookie[2])
{
    char *text = getenv(COOKIE_VARIABLE);
    if (!text)
        return false;
    char *end = text;
    ret_cookie[0] = strtoull(text, &end, 16);
    bool whole = *end == ':';
    if (whole)
        ret_cookie[1] = strtoull(end + 1, &end, 16);
    whole = whole && *end == '\0';
    explicit_bzero(text, strlen(text));
    (void)unsetenv(COOKIE_VARIABLE);
    return whole;
}

/* What a command inherits from us is set once, here: limits, mask, directory, dispositions. */
static void shape_ourselves(void)
{
    (void)prctl(PR_SET_NAME, "warren-init");
    (void)syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC);
    int fd = 0;
    while (fd >= 0 && fd <= 2) /* until 0, 1 and 2 are taken */
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd >= 0)
        (void)close(fd);
    (void)umask(022);
    if (chdir("/") < 0)
        die("cannot enter /", -errno);
    struct rlimit none = { 0, 0 };
    (void)setrlimit(RLIMIT_CORE, &none);
    for (int signo = 1; signo < NSIG; signo++)
        (void)signal(signo, SIG_DFL); /* whoever started us may have ignored some */
    if (getpid() != 1)
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void on_signal(struct watch *w, uint32_t events);
static struct watch signal_watch = { .fd = -1, .fn = on_signal };
static bool dead_left; /* more children to reap, after the peers' turn */
static struct {
    int64_t since, deaf_until; /* monotonic; deaf_until 0: we read signals */
    unsigned n;
} noise; /* signals that nobody needed */

static void note_noise(unsigned n)
{
    int64_t now = clock_mono_ms();
    if (now - noise.since >= NOISE_MS) {
        noise.since = now;
        noise.n = 0;
    }
    noise.n += n;
    if (noise.n <= NOISE_MAX)
        return;
    noise.deaf_until = now + NOISE_MS;
    poller_wake_at(noise.deaf_until);
    (void)poller_want(&signal_watch, 0);
}

static void hear_again(int64_t now)
{
    if (!noise.deaf_until)
        return;
    if (now < noise.deaf_until) {
        poller_wake_at(noise.deaf_until);
        return;
    }
    noise.deaf_until = 0;
    (void)poller_want(&signal_watch, EPOLLIN);
}

/* Every signal is blocked and arrives as an event, so none ends or interrupts us. Only SIGCHLD
 * matters, but we read all: a process inside can still send some (through a descriptor of our
 * directory in /proc, or an asynchronous file), and blocked ones would pile up. After too many
 * we stop reading for a moment, and the kernel refuses the sender's next ones. */
static void on_signal(struct watch *w, uint32_t events)
{
    struct signalfd_siginfo si[SIGNALS_MAX];
    unsigned unwanted = 0;
    ssize_t n = read(w->fd, si, sizeof(si));
    for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(si[0]); i++) {
        dead_left |= si[i].ssi_signo == SIGCHLD;
        unwanted += si[i].ssi_signo != SIGCHLD || si[i].ssi_code <= 0; /* not by the kernel */
    }
    if (unwanted)
        note_noise(unwanted);
}

static void reap(void)
{
    if (!dead_left)
        return;
    dead_left = procs_reap();
    if (dead_left)
        poller_again();
}

static int listen_for_signals(void)
{
    sigset_t all;
    (void)sigfillset(&all);
    if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
        return -errno;
    signal_watch.fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_watch.fd < 0)
        return -errno;
    return poller_want(&signal_watch, EPOLLIN);
}

static _Noreturn void run(void)
{
    for (;;) {
        bool due = poller_round();
        reap();
        if (due) {
            int64_t now = clock_mono_ms();
            procs_tick(now);
            peers_tick(now);
            sweep_tick(now);
            park_tick(now);
            hear_again(now);
        }
        peers_settle();
        procs_bury();
        park_settle();
    }
}

int main(int argc, char **argv)
{
    uint64_t cookie[2];
    int r;

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        (void)puts("warren-init " WARREN_VERSION);
        return 0;
    }
    (void)prctl(PR_SET_DUMPABLE, 0); /* before there is anything worth reading in here */
    bool has_cookie = take_cookie(cookie);
    struct options o = parse_options(argc, argv);
    shape_ourselves();

    launch_setup(o.procs_fds, o.procs_n, has_cookie ? cookie : NULL);
    explicit_bzero(cookie, sizeof(cookie));
    family_setup(o.group_fd);
    procs_setup(o.oom_fd);
    ops_setup();
    r = ps_open();
    if (r < 0)
        die("cannot open /proc", r);
    r = birth_setup();
    if (r < 0)
        die("cannot open /dev/null", r);
    r = poller_open();
    if (r < 0)
        die("cannot make an epoll", r);
    r = listen_for_signals();
    if (r < 0)
        die("cannot listen for signals", r);
    r = peers_listen(o.listen_fd);
    if (r < 0)
        die("cannot listen", r);
    run();
}
