/* starter - a process beside the keeper that starts CRIU, and nothing else.
 *
 * The keeper filters its system calls, and a filter passes to every process that it starts. CRIU can have
 * none (docs/architecture.md), so the keeper forks this process before it installs its own, and processes of the
 * keeper's ask it over a socket. A request says where CRIU is to run and which descriptors it gets, never which program
 * that is. The starter has CRIU's capabilities, reaps CRIU, and dies with the keeper; a keeper that loses it
 * has to be started again, since it can make no other. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define STARTER_STEPS_MAX 8
#define STARTER_SOCK_FD 3  /* in CRIU: the conversation with it */
#define STARTER_GIVEN_FD 4 /* and from here on what else it is given */
#define STARTER_GIVEN_MAX 2

struct starter {
    pid_t pid;
    int fd; /* reports its end, and takes requests of whoever inherits it */
};
#define STARTER_INIT \
    {                \
        -1, -1       \
    }

/* argv is the program, kept for as long as the starter lives; NULL: CRIU, found anew for each request (base/criu.h). */
int starter_start(struct starter *s, char *const *argv, struct err *err);
void starter_end(struct starter *s); /* and reaps it; CRIU goes on */

/* Where CRIU is to be, in this order. Its mount namespace and working directory are those of who asks. */
enum starter_step {
    STARTER_GROUP,     /* joins a group: fd is its cgroup.procs */
    STARTER_NAMESPACE, /* enters the namespace fd */
    STARTER_CGROUP_NS, /* makes a cgroup namespace where it is; no fd */
};
struct starter_place {
    struct {
        enum starter_step what;
        int fd; /* borrowed */
    } steps[STARTER_STEPS_MAX];
    size_t n;
};
int starter_place_add(struct starter_place *p, enum starter_step what, int fd); /* -E2BIG */

struct starter_child {
    pid_t pid;
    int pidfd;
    int gone; /* ends when the starter has reaped it and ended what a killed one left */
};

/* Asks the starter at the other end of `fd`. `sock` becomes CRIU's conversation; `given` (-1: none) its next
 * `ngiven` descriptors. All are borrowed. */
int starter_run(int fd, const struct starter_place *place, int sock, int given, unsigned ngiven,
                struct starter_child *ret_child, struct err *err);
/* Waits for the end of a CRIU that nobody talks to any more, kills one that does not end, and closes. */
void starter_wait(struct starter_child *c);
