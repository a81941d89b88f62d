/* serve - how we speak TLS as a server: what every context of ours has, whichever certificate it shows.
 *
 * HTTP/1.1 is all that is spoken. Nothing is remembered between connections. */
#pragma once
#include <stdbool.h>

struct ssl_ctx_st;

/* strict: a client that offers other protocols alone is refused; else it may find out by itself. NULL: no
 * memory. */
struct ssl_ctx_st *serve_context(bool strict);
