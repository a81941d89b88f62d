/* signature - a link to one file that needs no header: path, purpose, user and an end, signed with
 * the sandbox's token. */
#pragma once
#include "core/sandbox.h"
#include "front/http/request.h"

/* May this request read ("read") or write ("write") files of the sandbox? It brings the token, or
 * a signature in its query. -EACCES, unauthorized. */
int signature_check(struct request *req, const struct sandbox *s, const char *op, struct err *err);
/* Which sandbox a link that names none is signed for: these clients make such links where all sandboxes
 * have one address (E2B_SANDBOX_URL), and then nothing but the signature tells. Each sandbox there is
 * costs a hash, so all callers together get so many a second: -EBUSY, too_many_requests.
 * -EACCES, unauthorized. */
int signature_find(struct request *req, const char *op, char ret_id[ID_SIZE], struct err *err);
