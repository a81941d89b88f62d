/* tally - what sandboxes have carried since warrend was last told: by sandbox and host.
 *
 * Whoever moves bytes adds to it; once a second what has come together goes to warrend, which has the
 * sums. Rows live until then only, and are bounded: the hosts beyond a sandbox's share are one row
 * without a name, and secrets are as many as are bound. What a link does not take is added again and goes with the next. */
#pragma once
#include <stdint.h>

#include "base/id.h"
#include "base/loop.h"
#include "net/host.h"

#define TALLY_ROWS_OF_ONE 64 /* of a sandbox, between two reports */

enum tally_kind { TALLY_EGRESS, TALLY_PREVIEW, TALLY_USE };

struct tally_row {
    struct tally_row *next;
    char sandbox[ID_SIZE];
    enum tally_kind kind;
    uint32_t connections; /* or requests, of previews and of USE */
    uint32_t denied;
    uint64_t sent_bytes, received_bytes; /* as the sandbox sees it */
    char host[HOST_SIZE];                /* "": others, or a preview; of USE the binding's */
    char binding[64];                    /* USE: the secret, */
    uint16_t port;                       /* and where to */
};

#define TALLY_BUCKETS 256

struct tally {
    struct loop *loop;
    struct deadline deadline;
    struct tally_row *buckets[TALLY_BUCKETS]; /* by sandbox */
    /* 0: it was taken. */
    int (*send)(void *arg, const struct tally_row *row);
    void *arg;
};

void tally_init(struct tally *t, struct loop *loop,
                int (*send)(void *arg, const struct tally_row *row), void *arg);
void tally_done(struct tally *t); /* sends what is left */
/* `next` of it does not matter. Without memory it is lost. */
void tally_add(struct tally *t, const struct tally_row *row);
void tally_send(struct tally *t, const char *sandbox); /* now; NULL: of all */
