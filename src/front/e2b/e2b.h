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
/* Does one with this id run? Looking at it neither wakes it nor keeps it awake, so everyone may ask. */
bool e2b_runs(struct core *core, const char *id);
#define E2B_OPEN "e2b.open"          /* the name of that note */
#define E2B_PRIVATE_PREFIX "warren." /* metadata of other programs of ours, not shown */

#define TIMEOUT_V1_S 15
#define TIMEOUT_V2_S 300

/* Whether a request to a paused one resumes it; and do so: 0 when it runs. */
bool e2b_wakes(const struct sandbox *s);
bool e2b_is_empty(const json_t *v); /* not there, null, {} or [] */
/* Its ports are for who has the traffic token alone. */
bool e2b_is_private(const struct sandbox *s);
/* What `network` says of coming in; the rest of it is not looked at. */
int e2b_read_traffic(const json_t *network, struct sandbox_spec *spec, struct err *err);
/* What it may reach: allow_internet_access, and what `network` says of going out. */
int e2b_read_network(const json_t *object, struct sandbox_spec *spec, struct err *err);
/* A failure because of a secret that is not there is the request's own. */
int e2b_no_secret(struct err *err, int r);
/* allowInternetAccess and network. */
void e2b_put_network(struct jout *j, const struct sandbox *s);
/* Of coming in, into `network`. */
void e2b_put_access(struct jout *j, const struct sandbox *s);
/* trafficAccessToken and domain. */
void e2b_put_traffic(struct jout *j, struct request *req, const struct sandbox *s);
int e2b_wake(struct request *req, const char *id);

/* A core call's failure: one that ended and one that never was are the same to these clients. */
int e2b_failed(struct err *err, int r, const char *id);
/* The body's object; an empty one where there is no body. */
int e2b_read_optional(struct request *req, json_t **ret_object, struct err *err);
/* Seconds; 1 and the value, 0 when it is not there. */
int e2b_read_seconds(const json_t *object, const char *member, int64_t *ret_s, struct err *err);
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
int e2b_sandbox_resume(struct request *req, struct err *err);
int e2b_sandbox_fork(struct request *req, struct err *err);
int e2b_sandbox_snapshot(struct request *req, struct err *err);
int e2b_snapshots(struct request *req, struct err *err);
int e2b_sandbox_network(struct request *req, struct err *err);
int e2b_sandbox_logs(struct request *req, struct err *err);
int e2b_sandbox_logs_v1(struct request *req, struct err *err);
int e2b_sandbox_metrics(struct request *req, struct err *err);
int e2b_sandboxes_metrics(struct request *req, struct err *err);
int e2b_teams(struct request *req, struct err *err);
int e2b_team_metrics(struct request *req, struct err *err);
int e2b_team_metrics_max(struct request *req, struct err *err);
/* A request for a port of a sandbox that is not envd's: passed on to what listens there. */
const struct route *e2b_claim(const struct request *req);

int e2b_health(struct request *req, struct err *err);

bool e2b_is_paused(const struct sandbox *s); /* stopped is that too, without memory */

/* The answer to create and connect; its members alone. */
void e2b_put_sandbox(struct jout *j, struct request *req, const struct sandbox *s);
int e2b_reply_sandbox(struct request *req, unsigned status, const struct sandbox *s);

/* One sandbox as lists and lookups show it: members only, no braces. */
void e2b_put_listed(struct jout *j, const struct sandbox *s);
