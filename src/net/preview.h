/* preview - the host name under which a port of a sandbox is reached: <port>-<id>.<domain>. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/id.h"

#define PREVIEW_DOMAIN_MAX 200 /* with a label of 26 before it still a host name */

/* Host, as a client sent it (a port behind it does not count), names a port of a sandbox. */
bool preview_host(const char *host, size_t n, const char *domain, char ret_id[ID_SIZE],
                  unsigned *ret_port);
/* Host is api.<domain>, where E2B's clients look for the API when they know a domain alone. */
bool preview_is_api(const char *host, size_t n, const char *domain);
/* 1 to 65535, without zeros before it. */
bool preview_port(const char *p, size_t n, unsigned *ret_port);
