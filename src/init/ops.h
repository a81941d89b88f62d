/* ops - what each frame of a peer's does, and what is told to a peer that views or lists.
 *
 * No sockets here: frames in, `peer.out` filled, the peer's state moved. */
#pragma once
#include "wire/wire.h"

struct peer;

void ops_setup(void);
/* One whole frame. Negative: the peer is broken and must go. */
int ops_frame(struct peer *c, const struct wire_header *h, char *payload);
/* Put into `out` what there is to say now. */
int ops_gather(struct peer *c);
