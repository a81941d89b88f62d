/* porter - takes connections to the broker, for who must not wait for it.
 *
 * The link has room for a few dozen messages, and what the broker is busy with can take it longer than that
 * to read: a connection that finds no room waits in a line for its turn, which a thread takes.
 * While a broker is away they wait as well. Bounded: who comes beyond that is let go. */
#pragma once
#include "base/cleanup.h"
#include "base/err.h"

struct porter;

/* Keeps link_fd, on which nothing may be sent any more when it is freed (shutdown). */
int porter_new(int link_fd, struct porter **ret_p, struct err *err);
void porter_free(struct porter *p);
DEFINE_FREEP(struct porter *, porter_free)
/* Takes fd; does not wait. */
void porter_hand(struct porter *p, int fd);
