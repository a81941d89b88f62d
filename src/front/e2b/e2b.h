/* e2b - the interface that E2B's SDKs speak, translated to core calls.
 *
 * Three planes on one port: the control plane (REST, an API key), envd (Connect and plain HTTP, a
 * token of the sandbox) and the code interpreter. routes.c has the whole surface in one table. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/sandbox.h"
#include "front/http/request.h"

extern const struct dialect e2b_dialect;

/* A sandbox whose client asked for no token, as older ones may: envd is open to who knows its id. */
bool e2b_is_open(const struct sandbox *s);
#define E2B_OPEN "warren.e2b.open"   /* the name of that mark among the metadata */
#define E2B_PRIVATE_PREFIX "warren." /* metadata of ours, not shown */

const char *e2b_template_of(const struct sandbox *s);

int e2b_sandbox_create(struct request *req, struct err *err);
int e2b_sandbox_create_v1(struct request *req, struct err *err);
int e2b_sandbox_list(struct request *req, struct err *err);
int e2b_sandbox_list_v1(struct request *req, struct err *err);
int e2b_sandbox_get(struct request *req, struct err *err);
int e2b_sandbox_kill(struct request *req, struct err *err);
int e2b_sandbox_timeout(struct request *req, struct err *err);
int e2b_sandbox_refresh(struct request *req, struct err *err);
int e2b_sandbox_connect(struct request *req, struct err *err);
int e2b_sandbox_pause(struct request *req, struct err *err);
int e2b_sandbox_metrics(struct request *req, struct err *err);
/* A request for a port of a sandbox that is not envd's: passed on to what listens there. */
const struct route *e2b_claim(const struct request *req);

int e2b_health(struct request *req, struct err *err);

/* The answer to create and connect. */
int e2b_reply_sandbox(struct request *req, unsigned status, const struct sandbox *s);

/* One sandbox as lists and lookups show it: members only, no braces. */
void e2b_put_listed(struct jout *j, const struct sandbox *s);
