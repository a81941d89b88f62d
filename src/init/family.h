/* family - a process and everything it started, as one thing to signal.
 *
 * Where a cgroup v2 directory was handed to us each family is a group of its own under it, which
 * no setsid or double fork leaves; elsewhere it is what /proc says descends from the leader or
 * shares its session. An emptied group is kept for the next family: making one costs as much as
 * a twentieth of a fork and exec. Each call is a short write to the kernel. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

struct family {
    int dir; /* its group, O_PATH; -1: it has none */
    unsigned number;
    bool killed;
};

#define FAMILY_INIT \
    {               \
        .dir = -1   \
    }

void family_setup(int group_fd); /* kept; -1: no groups here */
/* An empty group. Without a directory of ours, success and no group. */
int family_new(struct family *f);
/* By the child, to enter before exec when it was not born inside. Async-signal-safe. */
int family_join(const struct family *f);
/* How many were there to signal, or -errno. SIGKILL leaves no survivor, not even one being born. */
int family_signal(struct family *f, pid_t leader, int signo);
bool family_alive(const struct family *f); /* has a process; false without a group */
void family_release(struct family *f);     /* only when none is alive; twice is fine */

/* While we are parked (park.h) no group is open, here and in each family; family_setup, then
 * family_unpark for each, opens those of the same names. */
void family_let_go(void);
void family_park(struct family *f);
void family_unpark(struct family *f);
