/* peer - one connection of the daemon's: one operation.
 *
 * Bytes are read into `in` when the socket has some; at the end of a round each peer that
 * something happened to steps: whole frames are handled (ops.h), answers are gathered, and what
 * there is goes out in as few sends as it can. A peer that does not read holds itself back and
 * the process it views, nobody else; a broken frame ends its own connection only. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "init/drain.h"
#include "init/feed.h"
#include "init/poller.h"
#include "init/sweep.h"

#define PEERS_MAX 256

enum peer_state {
    PEER_REQUEST,  /* nothing asked yet */
    PEER_ATTACHED, /* views a process */
    PEER_FEEDING,  /* a WRITE or CLOSE whose answer waits for the process */
    PEER_LISTING,
    PEER_SWEEPING, /* a SHUTDOWN that waits */
    PEER_PARKING,  /* the keeper's, which asked us to let go of everything */
    PEER_CLOSING,  /* the last answer is on its way */
    PEER_CLOSED,   /* freed at the end of the round */
};

struct peer {
    TAILQ_ENTRY(peer) link;
    TAILQ_ENTRY(peer) dirty_link;
    bool dirty;
    enum peer_state state;
    int64_t deadline; /* monotonic: for REQUEST to be whole, for CLOSING to be taken */
    struct watch watch;

    struct buf in;
    size_t in_at;      /* handled so far */
    size_t frame_size; /* of the frame being handled */
    struct buf out;
    size_t out_at;      /* sent so far */
    size_t output_left; /* of an OUTPUT frame, after `out`: bytes in the ring at viewer.cursor */
    bool blocked;       /* the socket took no more */

    struct viewer viewer;
    uint64_t end_offset; /* where EXITED follows; UINT64_MAX: not known yet */
    bool said_started;
    struct feeder feeder; /* in line while feeder.proc is set: `in` must not move */
    struct sweep_waiter waiter;
    struct {
        bool all;
        uint64_t after; /* numbers up to this one are told */
        int *pids;      /* then these, unless they are told already */
        size_t n, at;
    } listing;
};

int peers_listen(int fd); /* takes it: bound, a unix stream socket */
void peer_dirty(struct peer *c);
void peer_finish(struct peer *c); /* what is in `out` is the last of it */
void peer_close(struct peer *c);

size_t peers_count(void);
void peers_accept(bool on);
void peers_wake(void); /* all of them: what they wait for may have come */
/* For who parks (park.h): every connection's descriptor but that of `but`, and the listening one's, out
 * of the poller and the caller's; then the same ones again, or n of 0: all of them are gone. */
size_t peers_hand_out(const struct peer *but, int ret_fds[PEERS_MAX], int *ret_listener);
void peers_take_back(const struct peer *but, int listener, const int *fds, size_t n);
void peers_settle(void); /* the end of a round: let every dirty peer step */
void peers_tick(int64_t now);
