/* link - the broker's one connection to warrend.
 *
 * Datagrams come in and are given to the handler of their type, checked for size; what a handler
 * does not take of the descriptors is closed. Sending never blocks: what does not fit waits in
 * memory, bounded. When the other end is gone the broker ends. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/loop.h"

struct link;

struct link_handler {
    uint32_t type; /* 0 ends the table */
    size_t size;   /* of its struct */
    /* fd: -1, or the descriptor that came with it; taken. */
    void (*fn)(void *arg, const void *msg, int fd);
    /* Instead, for a message that brings so many; all taken. */
    size_t nfds;
    void (*many)(void *arg, const void *msg, const int *fds);
};

/* Takes fd; keeps handlers and arg. */
int link_new(struct loop *loop, int fd, const struct link_handler *handlers, void *arg,
             struct link **ret_link, struct err *err);
void link_free(struct link *link);
DEFINE_FREEP(struct link *, link_free)

/* fd (-1: none) is taken, also on failure. -ENOBUFS when too much waits already. */
int link_send(struct link *link, const void *msg, size_t size, int fd);
/* The same for what may be lost: it leaves room for the questions of clients, and what is said of one sandbox
 * for what is said of others. */
int link_offer(struct link *link, const char *sandbox, const void *msg, size_t size);
