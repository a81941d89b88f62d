/* sock - a connected socket in the loop, plain or under TLS.
 *
 * Reads and writes never block: -EAGAIN says to wait, 0 that the other side has ended. What to
 * wait for is said with sock_want; a socket of which nothing is wanted is not in the loop at all, so
 * that a hangup nobody can act on yet does not keep the loop busy. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/loop.h"

struct ssl_st;

struct sock {
    struct loop *loop;
    struct watch watch;
    int fd;
    struct ssl_st *ssl; /* NULL: plain */
    uint32_t wanted;
    uint64_t got, put;                   /* bytes of a plain one that nobody has counted yet */
    bool read_needs_out, write_needs_in; /* TLS has a word of its own to send or to get first */
};

/* Of a client's: what we write goes at once, and one that is gone without a word is noticed within two
 * minutes, however long it may be silent. */
void sock_tune(int fd);
/* Takes fd. */
void sock_init(struct sock *s, struct loop *loop, int fd,
               void (*fn)(struct watch *w, uint32_t events));
void sock_close(struct sock *s); /* at once; may be called twice */

int sock_want(struct sock *s, uint32_t events);
ssize_t sock_read(struct sock *s, void *p, size_t n);
ssize_t sock_write(struct sock *s, const void *p, size_t n);
bool sock_is_greeting(const struct sock *s); /* TLS is not agreed on yet */
bool sock_has_more(const struct sock *s);    /* bytes that the loop does not see */
void sock_end(struct sock *s);               /* we write no more */
/* What came is acknowledged now: its sender may hold the rest back until then (Nagle), for as long as
 * the kernel would wait for something to send along (40 ms). */
void sock_hurry(const struct sock *s);
