/* way - where a request is to go: a port of a sandbox, or warrend itself.
 *
 * The Host says it, a preview's or a name of a client's own; where that is neither, E2B's headers do for
 * what its clients upgrade. A name below the domain that is nobody's leads nowhere.
 * Two ports that E2B's clients know are answered by warrend in the sandbox's name. */
#pragma once
#include <stdbool.h>

#include "base/id.h"
#include "broker/own_names.h"
#include "broker/rewrite.h"
#include "net/head.h"
#include "wire/broker.h"

struct way {
    bool inside;           /* a port of a sandbox; else warrend */
    bool api;              /* warrend, as E2B's API */
    bool by_headers;       /* E2B's, not the Host */
    bool nobody;           /* its Host is nobody's */
    char sandbox[ID_SIZE]; /* "": none is named */
    unsigned port;
    struct broker_proof proof;
    bool by_query; /* its token is in the target */
    bool html;     /* a person looks at it */
};

/* What names lead where; tls: how the client came. */
struct way_map {
    const char *domain;
    const struct own_names *own_names;
    bool tls;
};

/* -EINVAL: it contradicts itself. */
int way_find(const struct head *h, const struct way_map *map, struct way *ret_way);
/* How its head is written anew; the texts must last as long. */
void way_rewrite(const struct way *way, struct rewrite *how);
