/* auth - what a registry wants to see before it answers: nothing, a password, or a token.
 *
 * Starts with nothing; a 401 brings a challenge, and answering it gives the header that the next
 * request carries. A token that ran out is met the same way. Tokens are asked for at the challenge's
 * realm, which may be another host: the registry that was trusted with the password names it. Threads
 * share one; secrets are wiped and never part of a message. */
#pragma once
#include "registry/exchange.h"

struct auth;

struct auth_config {
    const char *username, *password; /* NULL or empty: none */
    const char *repo;
    bool push;
    struct http *http; /* keeps */
};

int auth_new(const struct auth_config *config, struct auth **ret_auth, struct err *err);
void auth_free(struct auth *auth);
DEFINE_FREEP(struct auth *, auth_free)

/* The Authorization value of now (NULL: none), the caller's to free with auth_header_free, and
 * its number. */
int auth_header(struct auth *auth, char **ret_header, unsigned *ret_number, struct err *err);
void auth_header_free(char *header);

/* A request with header `number` met a 401 with this challenge. Blocks. Failures are
 * registry_unauthorized, or what the token's server did. */
int auth_answer(struct auth *auth, const char *challenge, unsigned number, struct err *err);
