/* drain - a process's output: from its pipes or terminal into its ring, and who looks at it.
 *
 * A viewer is a cursor in the ring. While somebody views, nothing before the slowest cursor is
 * overwritten: the pipes are left unread instead, which holds the process back. With no viewer
 * the oldest output goes. All rings together are bounded; the rings of what has ended go first. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "init/poller.h"
#include "init/ring.h"

struct proc;

struct viewer {
    TAILQ_ENTRY(viewer) link;
    struct proc *proc; /* NULL: looks at nothing */
    uint64_t cursor;
    bool output;                    /* wants the bytes, not only the end */
    void (*wake)(struct viewer *v); /* something changed; must not remove the viewer */
};

TAILQ_HEAD(viewers, viewer);

struct drain_stream {
    struct watch watch;
    struct proc *proc;
    unsigned kind; /* enum wire_stream */
    size_t owed;   /* bytes that lay in it when the process ended */
};

struct drain {
    struct ring ring;
    size_t counted; /* of the ring's memory, in the sum of all */
    struct drain_stream streams[2];
    struct viewers viewers;
    bool paused; /* a viewer is behind */
    bool hung;   /* a terminal that nobody has open just now */
};

void drain_init(struct proc *p, size_t ring_max);
void drain_done(struct proc *p);
/* Takes the descriptor: non-blocking, a pipe's reading end or a terminal's master. */
int drain_open(struct proc *p, int fd, unsigned kind);
void drain_listen(struct proc *p, bool writable); /* hear its streams; also when one takes input */
void drain_retry(struct proc *p);                 /* a hung terminal may have been opened again */

bool drain_is_open(const struct proc *p);
void drain_note_owed(struct proc *p); /* the process ended: what lies there now is still its own */
bool drain_is_settled(const struct proc *p);
bool drain_shed(struct proc *p);    /* give its ring up; false: nothing to give, or it is viewed */
void drain_compact(struct proc *p); /* no more will come: keep no more memory than it fills */

void viewer_add(struct viewer *v, struct proc *p, uint64_t since);
void viewer_remove(struct viewer *v); /* NULL proc is fine */
void viewer_moved(struct viewer *v);  /* its cursor went on */
void viewers_wake(struct proc *p);
