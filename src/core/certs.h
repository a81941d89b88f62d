/* certs - the certificates that the broker shows to those who come by TLS.
 *
 * The default one is the operator's own files' (then it is not here) or the local authority's (ca.h),
 * renewed in time. Others are files NAME.pem in a directory, a chain and its key each: put there by
 * the operator or, for names of clients' own (alias.h), by ACME (acme.h). A thread of its own looks
 * for what has changed every few seconds, and tells the broker; nothing is started again. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "core/core.h"

struct certs_config {
    const char *state;  /* a directory of the daemon's: ca/, certs/ and acme/ are in it */
    const char *domain; /* of previews */
    bool own_default;   /* by the local authority */
    const char *dir;    /* the operator's; NULL: certs/ in `state` */
    /* ACME; directory NULL: none */
    const char *acme_directory, *acme_email;
    int acme_hook_fd; /* the program warren-acme-hook (O_PATH); kept */
};

/* Starts the thread. The strings are copied. */
int certs_start(struct core *core, const struct certs_config *config, struct err *err);
void certs_stop(struct core *core); /* core_free's */
/* A new broker has none: all of them. */
void certs_tell(struct core *core);
/* There may be a new name: look at once. */
void certs_wake(struct core *core);

/* The local authority's certificate in PEM; NULL: there is none. Lasts as long as the core. */
const char *certs_authority(const struct core *core);

struct certs_state {
    bool found;          /* there is a certificate of that name */
    int64_t until_ms;    /* it is good until then */
    char failure[200];   /* why ACME gave none, or "" */
    int64_t next_try_ms; /* 0: none is planned */
};
void certs_state(struct core *core, const char *name, struct certs_state *ret_state);
/* What to answer for a token of ACME's under /.well-known/acme-challenge/; -ENOENT. */
#define CERTS_TOKEN_MAX 128
#define CERTS_PROOF_SIZE 512
int certs_challenge(struct core *core, const char *token, char ret_proof[CERTS_PROOF_SIZE]);
