/* auth - who asks: a key, or on the admin socket the kernel's word.
 *
 * A wrong key counts against the address it came from: after too many in a short while the
 * answer is 429 for that address, which slows guessing down and costs a valid key nothing. The
 * table of addresses is small and fixed, so a flood from many addresses cannot grow it. */
#pragma once
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/err.h"
#include "core/core.h"

#define AUTH_FAILURES_MAX 20
#define AUTH_WINDOW_S 10

struct auth;
int auth_new(struct auth **ret_auth, struct err *err);
void auth_free(struct auth *auth);
DEFINE_FREEP(struct auth *, auth_free)

/* One failed attempt from `from` (NULL or AF_UNIX: this machine). True while the address is
 * over the limit. */
bool auth_failed(struct auth *auth, const struct sockaddr *from, int64_t mono_ms);

/* The key that the two headers carry, either may be NULL: "Bearer KEY" and KEY. NULL: none. */
const char *auth_key_text(const char *authorization, const char *api_key);

/* True if the peer of this unix socket is root or the user we run as. */
bool auth_peer_trusted(int fd);
