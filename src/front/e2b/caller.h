/* caller - who asks for something inside of a sandbox, or of a volume: for the route table's `auth`.
 *
 * E2B's clients prove themselves there with a token of the thing itself, or with a link signed with it; no API key is
 * asked for. Only the head of the request is looked at, and nothing is woken, entered or kept awake for
 * those who are refused. On success req->subject is the thing's id. */
#pragma once
#include "front/http/request.h"

/* The sandbox's token, where it asks for one. -ENOTCONN: it is not there or does not run, which is answered
 * with 502 (envd_gone). */
int caller_by_token(struct request *req, struct err *err);
/* The same, or a signature in the query that lets into this path. */
int caller_by_link_to_read(struct request *req, struct err *err);
int caller_by_link_to_write(struct request *req, struct err *err);
/* The volume that the path names, by its token. */
int caller_by_volume_token(struct request *req, struct err *err);
