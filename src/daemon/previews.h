/* previews - warrend's side of the broker: who may reach which port of a sandbox, and the sockets for
 * it.
 *
 * The broker reads what clients send and decides nothing; here is what it asks (visit.h decides). A
 * question has a thread while it is answered, since a sandbox may take its time to wake up or to take
 * a connection; how many there may be is bounded, in all and for one sandbox, and more wait in line. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "core/core.h"
#include "front/http/server.h"

struct previews;

/* Takes link_fd; keeps core and domain. */
int previews_new(struct core *core, int link_fd, const char *domain, struct previews **ret_p,
                 struct err *err);
/* Begin to answer; connections with requests for warrend itself go to `server`, which is kept. */
int previews_start(struct previews *p, struct server *server, struct err *err);
/* No more answers; waits for those under way. */
void previews_stop(struct previews *p);
void previews_free(struct previews *p);
DEFINE_FREEP(struct previews *, previews_free)

/* For the server: true if the connection is a preview's, which took it. */
bool previews_divert(void *previews, int fd, const char *head, size_t n);
