/* life - one sandbox's life through E2B's API, timed: create, run `true`, kill.
 *
 * The three requests that E2B's client sends, without the client: what they take is the server's.
 * An answer other than the expected one is a failure with the daemon's own words. */
#pragma once

#include "../http.h"
#include "../sample.h"
#include "base/err.h"

struct e2b_id {
    char id[32], token[128];
};

int e2b_create(struct http *h, struct e2b_id *ret_id, struct err *err);
int e2b_run_true(struct http *h, const struct e2b_id *id, struct err *err);
int e2b_kill(struct http *h, const struct e2b_id *id, struct err *err);

int e2b_life(struct http *h, double *ret_us, struct err *err);

/* `clients` at once, each with a connection of its own, `lives` one after the other. */
struct e2b_burst {
    unsigned clients, lives;
    struct sample times;
    unsigned failures;
    char first_failure[400];
};
void e2b_burst(unsigned port, const char *key, struct e2b_burst *burst);
