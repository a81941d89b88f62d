/* client - the native API over HTTP, on the admin socket or a TCP address.
 *
 * Every request of a command goes through one client, so its connections are kept and used
 * again. A struct request is one of them: start it and poll until it is done, or let client_call
 * do both. Calls in flight together share one poll loop with whatever else the caller waits for;
 * nothing here has threads. What the daemon answers is bounded before it is believed. */
#pragma once
#include <curl/curl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/ndjson.h"

#define REQUEST_CODE_MAX 64 /* the API's error codes are about 20 */

struct client;

struct client_config {
    const char *socket; /* NULL: url is used */
    const char *url;
    const char *key;  /* NULL: none is sent */
    const char *team; /* NULL: the key's own */
    const char *ca;   /* a file of authorities to trust beside the system's; NULL: none */
};

int client_new(const struct client_config *config, struct client **ret_client, struct err *err);
void client_free(struct client *client);
DEFINE_FREEP(struct client *, client_free)
const char *client_where(const struct client *client); /* the socket or address, for people */
const char *client_team(const struct client *client);  /* NULL: the key's own */
bool client_is_here(const struct client *client);      /* the socket, or an address of loopback */

/* The next bytes of an upload: how many, 0 at the end, or -errno. Blocks as the source does. */
typedef ssize_t (*request_source_fn)(void *arg, void *p, size_t n);

/* The next bytes of a download; 0 or -errno. */
typedef int (*request_sink_fn)(void *arg, const void *p, size_t n);

struct request {
    /* asked; zero what is not used. Borrowed until the call is done. */
    const char *method, *path;
    const void *body;
    size_t body_len;
    const char *body_type;    /* NULL: no body */
    request_source_fn source; /* instead of body: read as it is sent */
    int64_t source_len;       /* -1: unknown */
    ndjson_fn on_line;        /* asks for a stream of lines; each goes here as it comes */
    request_sink_fn sink;     /* the answer's bytes go here, unless it is a failure */
    void *arg;                /* for source, on_line and sink */
    long timeout_s;           /* 0: the usual; -1: none */

    /* answered */
    bool active, done;
    int result;   /* once done: 0, or -errno and err */
    long status;  /* 0: no answer came */
    json_t *json; /* the answer, unless it was lines; owned */
    struct err err;
    char code[REQUEST_CODE_MAX]; /* the API's name of a failure, or empty */

    /* the client's own */
    CURL *easy;
    struct curl_slist *headers;
    struct buf text;
    struct ndjson lines;
    struct client *client;
};

/* Begin; done is set by a later client_poll. The call must stay where it is until then. */
int client_start(struct client *client, struct request *call, struct err *err);
/* Move what can move, then wait for bytes, for one of fds, or for the time-out. */
int client_poll(struct client *client, struct curl_waitfd *fds, unsigned nfds, int timeout_ms);
int client_perform(struct client *client, struct request *call, struct err *err);
/* Ends it if it is in flight; the struct may be used again. */
void request_done(struct request *call);

/* One request with a JSON body (NULL: none) and a JSON answer (*ret_json may be NULL; NULL when
 * the answer has no body). The failure's code is copied to ret_code, if not NULL. */
int client_call(struct client *client, const char *method, const char *path, const json_t *body,
                json_t **ret_json, char ret_code[REQUEST_CODE_MAX], struct err *err);

/* A handle that makes a connection as those of requests are made, through a proxy too, and then leaves
 * it to curl_easy_send and curl_easy_recv. NULL: no memory. */
CURL *client_raw(struct client *client);
/* The head of a request on such a connection, but for its last lines: who asks, and whom. */
int client_put_head(struct client *client, const char *method, const char *path, struct buf *out);
