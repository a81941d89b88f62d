/* forward - a port of a sandbox as a byte stream in a WebSocket: `warren forward`.
 *
 * warrend has answered the handshake and hands over both sockets; here is nothing but bytes, with
 * frames on one side. Each direction is read only as fast as the other end takes it, and ends by
 * itself: a Close frame stands for the end of a TCP stream. */
#pragma once
#include "base/loop.h"
#include "broker/link.h"
#include "wire/broker.h"

struct forward;

struct forwards {
    struct loop *loop;
    struct link *link;
    struct forward *first;
    unsigned n, most; /* of all sandboxes; one has a share of what is left */
};

void forwards_init(struct forwards *all, struct loop *loop, struct link *link);
void forwards_done(struct forwards *all); /* cuts them */
/* Takes the descriptors of a BROKER_FORWARD; the client has got its 101. */
void forward_begin(struct forwards *all, const char *sandbox, const int fds[BROKER_FORWARD_FDS]);
