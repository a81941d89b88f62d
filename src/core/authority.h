/* authority - the certificate authority of one sandbox, trusted inside it and nowhere else.
 *
 * Its key is derived from the daemon's own and the sandbox's id: nothing is stored, it is the same
 * after a restart, and no sandbox's says anything of another's. The broker signs with it for hosts that
 * bindings name. Pure but for the time a curve takes. */
#pragma once
#include "base/cleanup.h"
#include "base/err.h"
#include "core/seal.h"

struct authority {
    char *cert, *key; /* PEM */
    char hash[9];     /* of its name, as directories of certificates have it */
};

void authority_done(struct authority *a); /* the key is wiped */
int authority_make(const unsigned char key[SEAL_KEY_BYTES], const char *id, struct authority *ret_a,
                   struct err *err);
