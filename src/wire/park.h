/* park - how warren-init lets go of all that is the host's, and gets it back.
 *
 * Before a cell's memory is written down nothing in it may lead outside. The keeper asks for it on a
 * connection to init's socket, in two steps, so that the workload can be frozen between them:
 *
 *   PARK                     OK: no request is taken any more, no file worker is left
 *   PARK_NOW {text: name}    a struct park_reply with init's listening socket, then the connections
 *                            of others, PARK_BATCH at a time, each batch with one byte; the end of the
 *                            line says that init has let go of everything
 *
 * Init then holds nothing but an abstract socket of that name in the cell's own network namespace,
 * where it waits: here, or in a copy that was made of it. Whoever comes from outside its pid
 * namespace is the keeper and says struct park_up, with descriptors in the order of its `has`, then
 * the connections as they were handed out; init answers with one byte and goes on. */
#pragma once
#include <stdint.h>

#define PARK_VERSION 1
#define PARK_NAME_SIZE 33 /* 32 hex digits */
#define PARK_BATCH 15
#define PARK_PROCS 3 /* v1 groups that a command joins */

struct park_reply {
    uint32_t version;
    uint32_t peers; /* connections that follow */
};

enum park_has {
    PARK_LISTENER, /* bound, for the daemon to connect to */
    PARK_GROUP,    /* the workload's group; it has one below it for each family, as it was */
    PARK_OOM,      /* the file that counts out-of-memory kills */
    PARK_V1,       /* and the two behind it: "tasks" of v1 groups */
    PARK_HAS = PARK_V1 + PARK_PROCS,
};

struct park_up {
    uint32_t version;
    uint32_t peers; /* connections that follow: as many as were handed out, or 0: they are gone */
    uint8_t has[PARK_HAS];
};
