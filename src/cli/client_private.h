/* client_private - what client.c and client_error.c share. */
#pragma once
#include "cli/client.h"

struct client {
    CURLM *multi;
    char *socket; /* NULL: TCP */
    char *base;   /* what comes before a path */
    char *auth;   /* a header line, or NULL */
    char *team;   /* likewise */
    char *ca;     /* a file, or NULL */
    bool direct;  /* no proxy between */
    bool moved;   /* bytes arrived in this round */
};

/* Both: what went wrong, for a person. The first of the way there, the second as the API told it. */
int client_transport_error(const struct request *call, CURLcode rc, struct err *err);
int client_api_error(struct request *call);
