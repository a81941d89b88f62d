/* signature - a link to one file that needs no header: path, purpose, user and an end, signed with
 * the sandbox's token. */
#pragma once
#include "core/sandbox.h"
#include "front/http/request.h"

/* May this request read ("read") or write ("write") files of the sandbox? It brings the token, or
 * a signature in its query. -EACCES, unauthorized. */
int signature_check(struct request *req, const struct sandbox *s, const char *op, struct err *err);
/* Which sandbox a link without a sandbox's id is signed for; -ENOENT. */
int signature_find(struct request *req, const char *op, char ret_id[ID_SIZE]);
