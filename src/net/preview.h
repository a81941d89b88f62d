/* preview - the host name under which a port of a sandbox is reached: <port>-<id>.<domain>; and what its server
 * is told by us alone. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/id.h"

#define PREVIEW_DOMAIN_MAX 200 /* with a label of 26 before it still a host name */

/* Host, as a client sent it, names a port of a sandbox. Another port may stand behind a colon: the one that the
 * client came by, which a proxy before us may have changed. Nothing else may. */
bool preview_host(const char *host, size_t n, const char *domain, char ret_id[ID_SIZE],
                  unsigned *ret_port);
/* Host is api.<domain>, where E2B's clients look for the API when they know a domain alone. */
bool preview_is_api(const char *host, size_t n, const char *domain);
/* Host is a name below the domain, whatever is before it. */
bool preview_is_below(const char *host, size_t n, const char *domain);
/* Of a Host as a client sent it: without the port and the dot at the end. */
size_t preview_name_len(const char *host, size_t n);
/* Whether the name or bracketed address is followed by nothing, or by a colon and a port. */
bool preview_host_plain(const char *host, size_t n);
/* 1 to 65535, without zeros before it. */
bool preview_port(const char *p, size_t n, unsigned *ret_port);
/* A field that only we say to a server inside, or that some would take for one (text_reads_as). */
bool preview_own_field(const char *name, size_t n);
