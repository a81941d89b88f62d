#include "init/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "init/birth.h"
#include "init/file/worker.h"
#include "init/ps.h"
#include "wire/wire.h"

#define QUIET_MS 50         /* silence after which what still holds the pipes is not waited for */
#define SETTLE_MS 1000      /* and the longest that such a one can put EXITED off by printing */
#define TOGETHER_MAX_MS 100 /* the most that STARTED waits for what follows it */
#define LINGER_MS 100       /* until an emptied group is looked at: several deaths, one look */
#define REAP_MAX 128        /* of one round: a storm of orphans must not starve the connections */
#define KEPT_MAX (PROC_LIVE_MAX + PROC_ENDED_MAX)

TAILQ_HEAD(proc_list, proc);

static struct {
    struct proc_list all;   /* by number */
    struct proc_list ended; /* by time of end */
    struct proc_list dead;  /* out of the table; freed at the end of the round */
    size_t live_n, ended_n;
    uint64_t last;
    int oom_fd;
    int64_t linger_at; /* monotonic; INT64_MAX: no group to look at */
} procs = {
    .all = TAILQ_HEAD_INITIALIZER(procs.all),
    .ended = TAILQ_HEAD_INITIALIZER(procs.ended),
    .dead = TAILQ_HEAD_INITIALIZER(procs.dead),
    .oom_fd = -1,
    .linger_at = INT64_MAX,
};

void procs_setup(int oom_fd)
{
    if (procs.oom_fd >= 0)
        (void)close(procs.oom_fd);
    procs.oom_fd = oom_fd;
}

/* "oom_kill N" stands in memory.events of v2 and in memory.oom_control of v1 alike. */
static uint64_t oom_count(void)
{
    char text[512];
    ssize_t n = procs.oom_fd < 0 ? 0 : pread(procs.oom_fd, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *at = strstr(text, "oom_kill ");
    return at ? strtoull(at + strlen("oom_kill "), NULL, 10) : 0;
}

size_t procs_live(void)
{
    return procs.live_n;
}

struct proc *proc_find(uint64_t number)
{
    struct proc *p = proc_after(number - 1);
    return p && p->number == number ? p : NULL;
}

struct proc *proc_after(uint64_t number)
{
    struct proc *p;
    TAILQ_FOREACH(p, &procs.all, link)
        if (p->number > number && p->phase != PROC_STARTING && p->phase != PROC_FAILED)
            return p;
    return NULL;
}

bool proc_has_pid(pid_t pid)
{
    struct proc *p;
    TAILQ_FOREACH(p, &procs.all, link)
        if (p->pid == pid && p->phase < PROC_DRAINING)
            return true;
    return false;
}

/* ---- its life ---- */

static void leave_table(struct proc *p)
{
    TAILQ_REMOVE(&procs.all, p, link);
    TAILQ_INSERT_TAIL(&procs.dead, p, link);
    p->gone = true;
}

static void proc_free(struct proc *p)
{
    feed_end(p, -ESRCH);
    drain_done(p);
    poller_close(&p->report_watch);
    family_release(&p->family);
    free(p->args);
    free(p->user);
    free(p->label);
    free(p->cwd);
    free(p);
}

/* An ended one may go once 128 others ended after it, unless something it left behind still
 * prints or lives: then it stays while there is room, so that a daemon's pipe does not break. */
static void forget_old(void)
{
    struct proc *p = TAILQ_FIRST(&procs.ended);
    while (p && procs.ended_n > PROC_ENDED_MAX) {
        struct proc *next = TAILQ_NEXT(p, ended);
        bool crowded = procs.ended_n + procs.live_n > KEPT_MAX;
        if (crowded || (!drain_is_open(p) && p->family.dir < 0)) {
            TAILQ_REMOVE(&procs.ended, p, ended);
            procs.ended_n--;
            leave_table(p);
        }
        p = next;
    }
}

void procs_bury(void)
{
    forget_old();
    struct proc *p = TAILQ_FIRST(&procs.dead);
    while (p) {
        struct proc *next = TAILQ_NEXT(p, link);
        if (TAILQ_EMPTY(&p->drain.viewers)) {
            TAILQ_REMOVE(&procs.dead, p, link);
            proc_free(p);
        }
        p = next;
    }
}

bool procs_shed(const struct proc *but)
{
    struct proc *p;
    TAILQ_FOREACH(p, &procs.ended, ended)
        if (p != but && drain_shed(p))
            return true;
    return false;
}

static void release_family(struct proc *p)
{
    if (p->family.dir < 0)
        return;
    if (!family_alive(&p->family))
        family_release(&p->family);
}

static void proc_finish(struct proc *p)
{
    p->phase = PROC_ENDED;
    p->final_offset = p->drain.ring.tail;
    procs.live_n--;
    TAILQ_INSERT_TAIL(&procs.ended, p, ended);
    procs.ended_n++;
    release_family(p);
    viewers_wake(p);
}

/* The main process has ended. Is what it printed complete? When everyone closed the pipes; or
 * once what lay in them is read and, unless we killed them all, whoever still holds them has
 * been silent for a while. */
static bool output_is_final(struct proc *p)
{
    if (!drain_is_open(p))
        return true;
    if (!drain_is_settled(p))
        return false;
    if (p->killed)
        return true;
    int64_t now = clock_mono_ms();
    if (p->settle_at == INT64_MAX)
        p->settle_at = now + SETTLE_MS;
    if (now >= p->quiet_at || now >= p->settle_at)
        return true;
    poller_wake_at(p->quiet_at < p->settle_at ? p->quiet_at : p->settle_at);
    return false;
}

void proc_step(struct proc *p)
{
    switch (p->phase) {
    case PROC_STARTING:
    case PROC_RUNNING:
    case PROC_FAILED: return;
    case PROC_DRAINING:
        if (!output_is_final(p))
            return;
        proc_finish(p);
        break;
    case PROC_ENDED: break;
    }
    if (!drain_is_open(p))
        drain_compact(p);
}

/* exec said no (a report), or yes (the pipe's end). */
static void on_report(struct watch *w, uint32_t events)
{
    struct proc *p = container_of(w, struct proc, report_watch);
    ssize_t n = read(w->fd, &p->report, sizeof(p->report));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    poller_close(w);
    if (n == sizeof(p->report)) {
        p->phase = PROC_FAILED; /* in the table until it is reaped, but not to be found */
    } else {
        p->phase = PROC_RUNNING;
        free(p->cwd);
        p->cwd = NULL;
    }
    viewers_wake(p);
}

void proc_heard(struct proc *p)
{
    if (p->phase == PROC_STARTING)
        on_report(&p->report_watch, 0);
    if (p->phase == PROC_DRAINING)
        p->quiet_at = clock_mono_ms() + QUIET_MS;
    proc_step(p);
}

/* Should the kernel have no memory to listen with, its death is still noticed. */
static void listen_for_report(struct proc *p)
{
    p->report_at = INT64_MAX;
    (void)poller_want(&p->report_watch, EPOLLIN);
}

static size_t ring_size(const struct call *call)
{
    if (!call_has(call, WIRE_T_RING))
        return RING_DEFAULT;
    if (call->ring_bytes < RING_FIRST)
        return RING_FIRST;
    return call->ring_bytes < RING_MAX ? (size_t)call->ring_bytes : RING_MAX;
}

int proc_start(const struct call *call, struct proc **ret_p, struct err *err)
{
    if (procs.live_n >= PROC_LIVE_MAX)
        return err_fail(err, FAIL_TOO_MANY_PROCESSES, "%d commands run in this sandbox already",
                        PROC_LIVE_MAX);
    struct proc *p = calloc(1, sizeof(*p));
    if (!p)
        return err_fail(err, FAIL_OUT_OF_MEMORY, "no memory for a process");
    p->oom_before = oom_count();
    p->timeout_at = p->settle_at = p->report_at = INT64_MAX;
    p->report_watch = (struct watch){ .fd = -1, .fn = on_report };
    p->family.dir = -1;
    feed_init(p);
    drain_init(p, ring_size(call));
    int r = birth(p, call, err);
    if (r < 0) {
        proc_free(p);
        return r;
    }
    p->number = ++procs.last;
    p->started_ms = clock_now_ms();
    if (call->timeout_ms > 0) {
        p->timeout_at = clock_mono_ms() + (int64_t)call->timeout_ms;
        poller_wake_at(p->timeout_at);
    }
    if (call->together_ms) {
        bool longer = call->together_ms > TOGETHER_MAX_MS;
        p->report_at = clock_mono_ms() + (longer ? TOGETHER_MAX_MS : (int64_t)call->together_ms);
        poller_wake_at(p->report_at);
    } else {
        listen_for_report(p);
    }
    TAILQ_INSERT_TAIL(&procs.all, p, link);
    procs.live_n++;
    *ret_p = p;
    return 0;
}

static enum wire_reason reason_of(const struct proc *p)
{
    bool signalled = WIFSIGNALED(p->status);
    if (p->timed_out && signalled) /* else it was just quicker */
        return WIRE_TIMEOUT;
    /* A shell whose command was OOM-killed says so with 137. */
    bool sigkill =
        signalled ? WTERMSIG(p->status) == SIGKILL : WEXITSTATUS(p->status) == 128 + SIGKILL;
    if (sigkill && !p->killed && oom_count() > p->oom_before)
        return WIRE_OOM;
    return signalled ? WIRE_SIGNALLED : WIRE_EXIT;
}

static void on_death(struct proc *p, int status, const struct rusage *ru)
{
    if (p->phase == PROC_STARTING)
        on_report(&p->report_watch, 0);
    if (p->phase == PROC_FAILED) {
        procs.live_n--;
        leave_table(p);
        return;
    }
    p->phase = PROC_DRAINING;
    p->status = status;
    p->ended_ms = clock_now_ms();
    p->cpu_us = ((uint64_t)ru->ru_utime.tv_sec + (uint64_t)ru->ru_stime.tv_sec) * 1000000 +
                (uint64_t)ru->ru_utime.tv_usec + (uint64_t)ru->ru_stime.tv_usec;
    p->reason = reason_of(p);
    p->quiet_at = clock_mono_ms() + QUIET_MS;
    drain_note_owed(p);
    drain_retry(p);
    feed_end(p, -ESRCH);
    proc_step(p);
}

static bool is_reaped(const struct proc *p)
{
    return p->phase == PROC_DRAINING || p->phase == PROC_ENDED;
}

bool procs_reap(void)
{
    bool orphans = false;
    int n = 0;
    for (; n < REAP_MAX; n++) {
        struct rusage ru;
        int status;
        pid_t pid = wait4(-1, &status, WNOHANG, &ru);
        if (pid <= 0)
            break;
        struct proc *p, *found = NULL;
        TAILQ_FOREACH(p, &procs.all, link)
            if (p->pid == pid && !is_reaped(p))
                found = p;
        if (found)
            on_death(found, status, &ru);
        else if (!worker_reaped(pid))
            orphans = true;
    }
    /* The last of a family to die is an orphan, so it is then that a group may have emptied. */
    if (orphans && procs.linger_at == INT64_MAX) {
        procs.linger_at = clock_mono_ms() + LINGER_MS;
        poller_wake_at(procs.linger_at);
    }
    return n == REAP_MAX;
}

static void kill_family(struct proc *p)
{
    p->killed = true;
    (void)family_signal(&p->family, p->pid, SIGKILL);
    if (p->phase < PROC_DRAINING)
        (void)kill(p->pid, SIGKILL);
}

void procs_tick(int64_t now)
{
    bool linger = now >= procs.linger_at;
    if (linger)
        procs.linger_at = INT64_MAX;
    struct proc *p = TAILQ_FIRST(&procs.all);
    while (p) {
        struct proc *next = TAILQ_NEXT(p, link);
        drain_retry(p);
        feed_tick(p, now);
        if (now >= p->report_at)
            listen_for_report(p);
        else if (p->phase == PROC_STARTING && p->report_at != INT64_MAX)
            poller_wake_at(p->report_at);
        if (p->phase < PROC_DRAINING && now >= p->timeout_at) {
            p->timeout_at = INT64_MAX;
            p->timed_out = true;
            kill_family(p);
        } else if (p->phase < PROC_DRAINING && p->timeout_at != INT64_MAX) {
            poller_wake_at(p->timeout_at);
        } else if (p->phase == PROC_ENDED && linger) {
            release_family(p);
        } else if (p->phase == PROC_DRAINING) {
            proc_step(p);
        }
        p = next;
    }
    if (procs.linger_at != INT64_MAX)
        poller_wake_at(procs.linger_at);
}

void procs_signal_all(int signo)
{
    struct proc *p;
    TAILQ_FOREACH(p, &procs.all, link) {
        if (p->family.dir < 0 && p->phase >= PROC_DRAINING)
            continue; /* its number may be someone else's by now */
        (void)family_signal(&p->family, p->pid, signo);
    }
}

/* ---- what is asked of it ---- */

int proc_signal(struct proc *p, int signo, enum wire_scope scope, struct err *err)
{
    bool ended = p->phase >= PROC_DRAINING;
    int r = -ESRCH;
    if (scope == WIRE_SCOPE_TREE && (!ended || p->family.dir >= 0)) {
        if (signo == SIGKILL && !ended)
            p->killed = true;
        r = family_signal(&p->family, p->pid, signo);
        if (r == 0)
            r = -ESRCH; /* nobody was left to hear it */
    } else if (!ended) {
        /* It leads a session: its group has its number. */
        r = kill(scope == WIRE_SCOPE_PROCESS ? p->pid : -p->pid, signo) < 0 ? -errno : 0;
    }
    if (r == -ESRCH)
        return err_fail(err, FAIL_PROCESS_ENDED, "process %llu has ended",
                        (unsigned long long)p->number);
    if (r < 0)
        return err_set(err, -r, "cannot signal process %llu", (unsigned long long)p->number);
    return 0;
}

int proc_resize(struct proc *p, unsigned rows, unsigned cols, struct err *err)
{
    if (!p->terminal)
        return err_fail(err, FAIL_NOT_A_TERMINAL, "process %llu has no terminal",
                        (unsigned long long)p->number);
    struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols };
    int fd = p->drain.streams[0].watch.fd;
    if (fd < 0 || ioctl(fd, TIOCSWINSZ, &size) < 0)
        return err_fail(err, FAIL_PROCESS_ENDED, "process %llu has ended",
                        (unsigned long long)p->number);
    return 0;
}

/* ---- while its memory is written down ---- */

size_t procs_starting(void)
{
    size_t n = 0;
    struct proc *p;
    TAILQ_FOREACH(p, &procs.all, link)
        n += p->phase == PROC_STARTING;
    return n;
}

void procs_each_family(void (*fn)(struct family *f))
{
    struct proc *p;
    TAILQ_FOREACH(p, &procs.all, link)
        fn(&p->family);
}

void procs_forget_ooms(void)
{
    uint64_t now = oom_count();
    struct proc *p;
    TAILQ_FOREACH(p, &procs.all, link)
        p->oom_before = now;
}
