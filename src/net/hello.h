/* hello - the server name in a TLS ClientHello, whatever records and segments it comes in.
 *
 * Reads all bytes that a client has sent so far. The whole message is read before a name is
 * believed: one name, once, in a form that can be compared; anything that two readers could read
 * in two ways is malformed. A hello with an encrypted one inside (ECH) is reported as such:
 * whether it holds another name, and which, only the server can tell. Decides nothing. Pure
 * functions. */
#pragma once
#include <stddef.h>

#include "net/host.h"

#define HELLO_MAX (16 * 1024) /* bytes on the wire; post-quantum ones have some 2 KiB */

#define HELLO_ENCRYPTED 1

/* 0: ret_name is canonical. HELLO_ENCRYPTED: likewise, but the server may read another name.
 * -EAGAIN: more bytes are needed. -ENOENT: a whole ClientHello without a name. -EBADMSG:
 * malformed, too long, or not a ClientHello. */
int hello_read(const void *p, size_t n, char ret_name[HOST_SIZE]);
