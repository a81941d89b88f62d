/* rewrite - heads as they are sent on: what belongs to one hop stays behind, what only we may say is
 * said by us, and no credential of Warren's reaches a server inside.
 *
 * A server gets X-Forwarded-For (with the address we saw at the end), -Proto and -Host, and what a
 * token says of the client. Pure functions over a head and a buffer. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "net/head.h"

struct rewrite {
    bool inside;      /* to a server in a sandbox, not to warrend */
    bool tls;         /* how the client came */
    bool near;        /* from this machine: a proxy there, which is believed whom it speaks for */
    const char *peer; /* its address as text */
    const char *data; /* X-Verified-User-Data; NULL or "": none */
    const char *host; /* said instead of the client's Host; "": as it is */
    const char *sandbox; /* for warrend: whose envd is meant, with the port; NULL: nobody's */
    unsigned port;
    const char *strip;  /* a beginning of the path that is left out, or NULL */
    const char *prefix; /* one that is put before it, or NULL */
};

/* Does it ask to go on as something else, to which it may? Not with a body, and not as HTTP in another form,
 * which would be read by nobody on the way. */
bool rewrite_upgrades(const struct head *h);
int rewrite_request(const struct head *h, const struct rewrite *how, struct buf *out);
/* keep: the client's connection will be used again. inside: it comes from a server in a sandbox, whose
 * cookies stay with its own host. */
int rewrite_answer(const struct head *h, bool inside, bool keep, struct buf *out);
