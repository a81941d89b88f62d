/* way - where a request is to go: a port of a sandbox, or warrend itself.
 *
 * The Host says it; where that is not a preview's, E2B's headers do for what its clients upgrade.
 * Two ports that E2B's clients know are answered by warrend in the sandbox's name. */
#pragma once
#include <stdbool.h>

#include "base/id.h"
#include "broker/rewrite.h"
#include "net/head.h"
#include "wire/broker.h"

struct way {
    bool inside;           /* a port of a sandbox; else warrend */
    bool api;              /* warrend, as E2B's API */
    bool by_headers;       /* E2B's, not the Host */
    char sandbox[ID_SIZE]; /* "": none is named */
    unsigned port;
    char token[BROKER_TOKEN_SIZE];
    bool html; /* a person looks at it */
};

/* -EINVAL: it contradicts itself. */
int way_find(const struct head *h, const char *domain, struct way *ret_way);
/* How its head is written anew; the texts must last as long. */
void way_rewrite(const struct way *way, struct rewrite *how);
