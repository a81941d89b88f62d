/* ca - an authority of this daemon's own, for development: certificates of the domain of previews
 * without asking anybody.
 *
 * Its key lies in a directory of the daemon's, made at first need. It can vouch for names of that
 * domain and this machine alone (a constraint in the certificate), so that who trusts it trusts
 * it with nothing else; another domain gets another one. Blocks for as long as the disk takes. */
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

struct ca;

/* In `dir`, which is made. */
int ca_open(const char *dir, const char *domain, struct ca **ret_ca, struct err *err);
void ca_free(struct ca *ca);
DEFINE_FREEP(struct ca *, ca_free)
const char *ca_pem(const struct ca *ca); /* its certificate */

enum ca_kind {
    CA_SERVER, /* for the domain, every name right below it, and this machine */
    CA_BELOW, /* an authority in turn, for names below the domain: who holds it makes them as they are
                * asked for. A domain of one label has no wildcard that clients take. */
};

/* Appends certificates and key in PEM; *ret_until_ms: until when they are good. */
int ca_issue(const struct ca *ca, enum ca_kind kind, struct buf *out, int64_t *ret_until_ms,
             struct err *err);
