/* proc - the commands started through the API: their table, and the life of each.
 *
 * A proc lives from START until 128 others have ended after it. Events on its descriptors, the
 * clock and SIGCHLD record what happened and call its one proc_step(), which decides. Nobody
 * frees a proc in its own callback: procs_bury() does, at the end of a round.
 * See drain.h for its output and feed.h for its input. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "init/call.h"
#include "init/drain.h"
#include "init/family.h"
#include "init/feed.h"
#include "init/launch.h"
#include "init/poller.h"
#include "init/ring.h"

#define PROC_LIVE_MAX 1024
#define PROC_ENDED_MAX 128

enum proc_phase {
    PROC_STARTING, /* forked; exec has not said yes or no */
    PROC_RUNNING,
    PROC_DRAINING, /* ended; its last output is on its way */
    PROC_ENDED,
    PROC_FAILED, /* it never ran: `report` says why */
};

struct proc {
    TAILQ_ENTRY(proc) link;  /* in the table, by number; later among the dead */
    TAILQ_ENTRY(proc) ended; /* by time of end */
    uint64_t number;
    enum proc_phase phase;
    pid_t pid; /* ours to reap, so it names no one else while the phase is before DRAINING */
    struct family family;
    struct watch report_watch;
    struct launch_report report;
    struct drain drain;
    struct feed feed;

    int64_t started_ms, ended_ms; /* wall clock */
    int64_t timeout_at;           /* monotonic; INT64_MAX: none */
    int64_t report_at; /* monotonic: from then on exec's report is listened for; INT64_MAX: it is */
    int64_t quiet_at, settle_at; /* monotonic: when the last output counts as come */
    uint64_t final_offset;       /* ENDED: where the output before EXITED ends */
    uint64_t oom_before;         /* OOM kills in the sandbox when it started */
    uint64_t cpu_us;
    int status; /* as from wait */
    enum wire_reason reason;
    bool terminal, timed_out, killed, gone;

    char *args; /* for listings: NUL-terminated, one after the other */
    size_t args_n;
    char *user, *label, *cwd; /* cwd only while STARTING */
};

void procs_setup(int oom_fd); /* takes it, for a former one; -1: nothing tells of OOM kills */

/* Fork it. The proc is in the table; the caller looks at it (viewer_add) before the round ends. */
int proc_start(const struct call *call, struct proc **ret_p, struct err *err);
struct proc *proc_find(uint64_t number);  /* NULL; never one whose exec has not happened */
struct proc *proc_after(uint64_t number); /* the one with the next number, for listings */
bool proc_has_pid(pid_t pid);             /* one that runs */
size_t procs_live(void);
void proc_step(struct proc *p);
void proc_heard(struct proc *p);         /* it printed something: then proc_step */
bool procs_shed(const struct proc *but); /* the oldest ring of what has ended; false: none left */

int proc_signal(struct proc *p, int signo, enum wire_scope scope, struct err *err);
int proc_resize(struct proc *p, unsigned rows, unsigned cols, struct err *err);

bool procs_reap(void); /* SIGCHLD came; true: there may be more, call again soon */
void procs_tick(int64_t now);
void procs_signal_all(int signo); /* every family */
void procs_bury(void);

/* For who parks (park.h). */
size_t procs_starting(void); /* forked, and exec not heard of */
void procs_each_family(void (*fn)(struct family *f));
void procs_forget_ooms(void); /* the counter began anew */
