/* sink - a process's output on its way to our stdout and stderr, in order.
 *
 * Output is put in while the network moves and flushed when it does not, so that a reader who
 * is slow holds back only the flush. On a terminal that is not the process's own, what is
 * written is made harmless first (see sanitise.h); elsewhere bytes pass untouched. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "cli/sanitise.h"

struct sink_piece {
    int fd;
    size_t len;
};

struct sink {
    struct buf data;
    struct sink_piece *pieces; /* what part of data goes where, in order */
    size_t n, cap;
    struct sanitiser clean[3]; /* by fd */
    bool cleaned[3];
};

void sink_init(struct sink *s, bool own_terminal);
void sink_done(struct sink *s);
int sink_put(struct sink *s, int fd, const char *p, size_t n); /* fd is 1 or 2; -EMSGSIZE */
/* Write what is there. 0; -EINTR with the rest kept, when a signal came; -EPIPE and the like,
 * with everything dropped. Blocks. */
int sink_flush(struct sink *s);
int sink_end(struct sink *s); /* the last of it: unfinished sequences, colours reset */
