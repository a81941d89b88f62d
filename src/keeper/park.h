/* park - the keeper's side of wire/park.h: a cell's init lets go of the host, and is brought back.
 *
 * A note in the cell's run directory says that one is parked, by which name, and which CRIU is at
 * work on it, so that whoever comes after a keeper's death can bring it back. All of it blocks, with
 * deadlines: it is for processes made for it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "wire/park.h"

#define PARK_PEERS_MAX 256
#define PARK_NOTE "parked"

struct cgroup_fds;

struct parked {
    int listener; /* init's own; -1: none, a new one is made */
    int peers[PARK_PEERS_MAX];
    size_t n;
};
#define PARKED_INIT            \
    {                          \
        .listener = -1, .n = 0 \
    }
void parked_close(struct parked *p);

struct park_note {
    char name[PARK_NAME_SIZE];
    pid_t criu; /* 0: none yet */
    uint64_t criu_start;
};
int park_note_write(int run_dir, const struct park_note *note); /* 0 or -errno */
int park_note_read(int run_dir, struct park_note *ret_note);    /* -ENOENT */
void park_note_remove(int run_dir);

/* The first step: the line to say the second on; owned. */
int park_ask(int run_dir, int *ret_line, struct err *err);
/* The second; what comes back is owned, failure or not. */
int park_go(int line, const char *name, struct parked *ret_parked, struct err *err);
/* Bring it back: `pid` is init's. The descriptors stay the caller's. */
int park_return(pid_t pid, const char *name, const struct parked *p, const struct cgroup_fds *fds,
                struct err *err);
bool park_is_deaf(int run_dir); /* nobody listens on its socket */
/* Is it up and listening on its own socket? */
int park_ping(int run_dir);
