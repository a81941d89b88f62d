/* credential - what a registry wants to see before it answers: nothing, a password, or a token.
 *
 * Starts with nothing; a 401 brings a challenge, and answering it gives the header that the next
 * request carries. A token that ran out is met the same way. Tokens are asked for at the challenge's
 * realm, which may be another host: the registry that was trusted with the password names it. Threads
 * share one; secrets are wiped and never part of a message. */
#pragma once
#include "registry/exchange.h"

struct credential;

struct credential_config {
    const char *username, *password; /* NULL or empty: none */
    const char *repo;
    bool push;
    struct http *http; /* keeps */
};

int credential_new(const struct credential_config *config, struct credential **ret_cred,
                   struct err *err);
void credential_free(struct credential *cred);
DEFINE_FREEP(struct credential *, credential_free)

/* The Authorization value of now (NULL: none), the caller's to free with credential_header_free, and
 * its number. */
int credential_header(struct credential *cred, char **ret_header, unsigned *ret_number,
                      struct err *err);
void credential_header_free(char *header);

/* A request with header `number` met a 401 with this challenge. Blocks. Failures are
 * registry_unauthorized, or what the token's server did. */
int credential_answer(struct credential *cred, const char *challenge, unsigned number,
                      struct err *err);
