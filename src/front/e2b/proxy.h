/* proxy - the proxy that a sandbox's connections go through, in E2B's words: SOCKS5, at host:port. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/* Appends the line of a network (core/network.h) that names it, nothing where there is none. `by_name`: it
 * is told names, and asks for them itself. */
int egress_proxy_read(const json_t *v, bool by_name, struct buf *network, struct err *err);
/* "egressProxy", without the password, if the network has one of this kind. */
void egress_proxy_put(struct jout *j, const char *network);
