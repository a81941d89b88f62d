/* signature - a link to one file that needs no header: path, purpose, user and an end, signed with
 * the sandbox's token. */
#pragma once
#include "core/sandbox.h"
#include "front/http/request.h"

/* May this request read ("read") or write ("write") files of the sandbox? It brings the token, or
 * a signature in its query. -EACCES, unauthorized. */
int signature_check(struct request *req, const char *id, const char *op, struct err *err);
/* Find the sandbox that a link without an id is signed for: clients make such links where all
 * sandboxes have one address (E2B_SANDBOX_URL), and only the signature tells them apart. Each
 * sandbox there is costs a hash, so all callers share a budget of hashes: -EBUSY,
 * too_many_requests. -EACCES, unauthorized. */
int signature_find(struct request *req, const char *op, char ret_id[ID_SIZE], struct err *err);
