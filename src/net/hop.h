/* hop - the words that pass between us and a proxy until it has connected us.
 *
 * HTTP's CONNECT, or SOCKS5 with or without a user. Bytes of the proxy go in, words for it come out;
 * what follows the proxy's last word is the world's and is not taken. A proxy is trusted with
 * nothing: its answers are bounded and read strictly. Pure: knows no socket. */
#pragma once
#include "base/buf.h"
#include "net/proxy.h"

#define HOP_HEAD_MAX (8 * 1024) /* of an answer to CONNECT */

enum hop_state { HOP_HTTP, HOP_METHOD, HOP_LOGIN, HOP_REPLY, HOP_OVER };

struct hop {
    const struct proxy *up; /* keeps: until hop_done */
    enum hop_state state;
    struct address to;
    uint16_t port;
    char name[HOST_SIZE];
    struct buf out; /* what is to be said; who has said it clears it */
    struct buf in;  /* an answer that is not whole */
};

/* name: "" where the proxy is to be told the address. -ENOMEM. */
int hop_init(struct hop *h, const struct proxy *up, const struct address *to, uint16_t port,
             const char *name);
void hop_done(struct hop *h);

/* How many of these bytes were the proxy's own goes to *ret_used. 1: it has connected us, 0: more is needed;
 * -EKEYREJECTED: not with this user and password; -EACCES: it does not want to;
 * -EPROTO: it makes no sense; -ECONNREFUSED, -EHOSTUNREACH, -ENETUNREACH, -ETIMEDOUT as it says. */
int hop_take(struct hop *h, const char *p, size_t n, size_t *ret_used);
