/* opening - what a client speaks, told by its first bytes, and the host it names if it names one.
 *
 * TLS and HTTP name the host they are for; most else does not, and is told apart so that it can be
 * judged by the name that was resolved. Where only those two are spoken (ports 80 and 443), and
 * where something looks like them and is not well formed, the answer is `bad`, not `other`: what one
 * reader takes for noise, another may take for a request. Pure functions. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/host.h"

#define OPENING_MAX (16 * 1024) /* no opening needs more: then it is bad */

enum opening {
    OPENING_MORE,          /* more bytes are needed */
    OPENING_TLS,           /* with a name */
    OPENING_TLS_ENCRYPTED, /* with a name; the server may read another one */
    OPENING_HTTP,          /* a request line; the name is in the request */
    OPENING_OTHER,         /* names no host */
    OPENING_BAD,           /* looks like TLS or HTTP, without a name or malformed */
};

enum opening opening_read(const void *p, size_t n, uint16_t port, char ret_name[HOST_SIZE]);
/* Of what could not be told when it ended: other or bad. greeted: the server spoke first, as none of HTTP does. */
enum opening opening_ended(const void *p, size_t n, bool greeted);
