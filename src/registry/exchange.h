/* exchange - one HTTP request and its answer, by libcurl, with everything a stranger sends bounded.
 *
 * Redirects and credentials are the caller's: an exchange goes where it is told and nowhere else. A
 * connection is opened only to an address that `access` allows, in the clear only to loopback and to
 * the host that was called insecure. Blocks; any number of threads may share a struct http, whose
 * handles keep their connections. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "registry/access.h"
#include "registry/sha.h"

#define EXCHANGE_URL_MAX 8192 /* object stores sign their addresses at length */
#define EXCHANGE_CHALLENGE_MAX 8192
#define EXCHANGE_TYPE_MAX 128
#define EXCHANGE_HOST_MAX 300

struct http_config {
    struct access access;
    const char *insecure_host;    /* keeps; NULL, or the host without port that may be plain or have
                                * a certificate that nobody vouches for */
    unsigned timeout_s;           /* without a byte moving, or without a connection */
    bool (*cancelled)(void *arg); /* asked about once a second; NULL: never */
    void *arg;
};

struct http;
int http_new(const struct http_config *config, struct http **ret_http, struct err *err);
void http_free(struct http *http);
DEFINE_FREEP(struct http *, http_free)
bool http_cancelled(const struct http *http);

/* Bytes of an answer with status 200 or 206, as they come. Below zero ends the exchange with that
 * failure. The exchange's head is there already. */
struct exchange;
typedef int (*exchange_sink_fn)(void *arg, const struct exchange *x, const void *p, size_t n,
                                struct err *err);
typedef void (*exchange_sent_fn)(void *arg, uint64_t bytes); /* of the body, so far */

struct exchange {
    /* asked; borrowed until it is done */
    const char *method, *url;
    const char *authorization; /* NULL, or the header's value */
    const char *accept, *content_type;
    uint64_t range_from; /* 0: all of it */
    const void *body;
    int body_fd; /* used when body_size is set and body is NULL; read from offset 0 */
    uint64_t body_size;
    exchange_sent_fn sent;
    exchange_sink_fn sink; /* NULL: the answer goes to `answer` */
    void *arg;

    /* answered */
    long status;
    struct buf answer; /* born with the caller's limit; a longer one is a failure */
    char location[EXCHANGE_URL_MAX], type[EXCHANGE_TYPE_MAX], digest[SHA_SIZE];
    char challenge[EXCHANGE_CHALLENGE_MAX]; /* every WWW-Authenticate, a comma between */
    bool ranged;                            /* Content-Range was there */
    uint64_t range_start;
    unsigned retry_after_s;
    bool transient; /* a failure that may be another time: the line broke, or went silent */
    bool silent;    /* ... it went silent */
    bool talked;    /* a byte of an answer came */
};

/* 0 once an answer came, whatever its status; -errno and a sentence (registry_failed) if none did.
 * -ECANCELED when the caller's `cancelled` said so. */
int exchange_run(struct http *http, struct exchange *x, struct err *err);
void exchange_done(struct exchange *x);

/* ---- addresses ---- */

/* "host[:port]" of an absolute http or https URL without user, and its scheme; registry_failed for
 * anything else. */
int url_origin(const char *url, bool *ret_tls, char ret_host[EXCHANGE_HOST_MAX], struct err *err);
bool url_same_origin(const char *a, const char *b);
/* Where `location` leads when it was met at `base`. */
int url_resolve(const char *base, const char *location, char ret_url[EXCHANGE_URL_MAX],
                struct err *err);
/* Append name=value, escaped, to the query of url. */
int url_add_query(char url[EXCHANGE_URL_MAX], const char *name, const char *value, struct err *err);
