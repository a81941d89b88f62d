#include "init/sweep.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "init/file/worker.h"
#include "init/poller.h"
#include "init/proc.h"

#define LOOK_MS 10   /* between two looks at whether anyone is left */
#define KILL_MS 5000 /* what a killed process may need to be gone: it may be in the disk's hands */

static struct {
    TAILQ_HEAD(, sweep_waiter) waiters;
    bool on, killing;
    int64_t until; /* monotonic: the grace's end, then the kill's */
} sweep = { .waiters = TAILQ_HEAD_INITIALIZER(sweep.waiters) };

bool sweep_is_on(void)
{
    return sweep.on;
}

static void signal_all(int signo)
{
    if (getpid() == 1) {
        (void)kill(-1, signo);
    } else {
        procs_signal_all(signo);
        workers_signal_all(signo);
    }
}

/* All of the namespace descends from us, so no child means nobody. */
static bool nobody_left(void)
{
    siginfo_t si;
    return waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

void sweep_begin(struct sweep_waiter *w, uint64_t grace_ms)
{
    TAILQ_INSERT_TAIL(&sweep.waiters, w, link);
    w->waiting = true;
    if (!sweep.on) {
        sweep.on = true;
        sweep.killing = false;
        sweep.until = clock_mono_ms() + (int64_t)grace_ms;
        signal_all(SIGTERM);
        signal_all(SIGCONT); /* the stopped hear it too */
    }
    poller_wake_at(clock_mono_ms());
}

void sweep_cancel(struct sweep_waiter *w)
{
    if (!w->waiting)
        return;
    TAILQ_REMOVE(&sweep.waiters, w, link);
    w->waiting = false;
}

static void finish(void)
{
    struct sweep_waiter *w;
    sweep.on = false;
    while ((w = TAILQ_FIRST(&sweep.waiters))) {
        sweep_cancel(w);
        w->done(w);
    }
}

void sweep_tick(int64_t now)
{
    if (!sweep.on)
        return;
    if (nobody_left() || (sweep.killing && now >= sweep.until)) {
        finish();
        return;
    }
    if (!sweep.killing && now >= sweep.until) {
        sweep.killing = true;
        sweep.until = now + KILL_MS;
    }
    if (sweep.killing)
        signal_all(SIGKILL);
    poller_wake_at(now + LOOK_MS);
}
