/* private - the inside of a struct registry, for the files of registry/ only. */
#pragma once
#include "registry/credential.h"
#include "registry/exchange.h"
#include "registry/registry.h"

struct registry {
    struct reference ref;
    char base[REFERENCE_HOST_MAX + 16]; /* "https://host" */
    struct http *http;
    struct credential *auth;
};

/* <base>/v2/<repo>/<kind>/<name> */
int registry_url(const struct registry *reg, const char *kind, const char *name,
                 char ret_url[EXCHANGE_URL_MAX], struct err *err);
/* Run x at x->url with credentials where they belong, following redirects of GET and HEAD. 0 with
 * a status that may be a failure's; registry_check makes an error of it. */
int registry_ask(struct registry *reg, struct exchange *x, struct err *err);
/* 0 for a 2xx; else registry_unauthorized, registry_not_found or registry_failed, and x->transient
 * for what may go away. `what`: the thing that was asked for, in words. */
int registry_check(const struct registry *reg, struct exchange *x, const char *what,
                   struct err *err);

/* Trying again: a few times without progress, each after a longer pause. */
struct retry {
    unsigned tries;
};
/* True, after the pause, if x's failure is worth another try. */
bool retry_again(struct registry *reg, struct retry *retry, const struct exchange *x);
