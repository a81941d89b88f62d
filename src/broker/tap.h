/* tap - a connection from a sandbox to a bound host. It ends here; each of its requests is read
 * strictly, judged, written anew with its credential, and sent on under TLS that was verified.
 *
 * Two ways lead here: the host's own name, for which we show a certificate of the sandbox's own CA, and a
 * name of ours (http://NAME.warren), which is reached at an address that is nowhere else. The life
 * of it is one switch in tap.c; errand.c is one request and its answer. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/address.h"

#define TAPS_MAX 256 /* connections of one sandbox at once */
#define TAP_INNER_ADDRESS \
    {                     \
        192, 0, 2, 80     \
    } /* documentation's: nobody has it */
#define TAP_INNER_PORT 80

struct network;

/* Is this where names of ours lead to? */
bool tap_is_inner(const struct network *n, const struct address *to, uint16_t port);
/* May a bound host be at this place? Then its client's first bytes tell. */
bool tap_may_be(const struct network *n, const struct address *to, uint16_t port);
/* A client that names this host there is to be taken. */
bool tap_takes(struct network *n, const char *host, const struct address *to, uint16_t port);

void tap_begin_inner(struct network *n, int fd); /* takes fd */
/* Takes fd, of which `first` was read already. */
void tap_begin(struct network *n, int fd, const struct buf *first, const char *host,
               const struct address *to, uint16_t port);
void taps_judge_again(struct network *n); /* bindings or rules have changed */
void taps_close(struct network *n);
