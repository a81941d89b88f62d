/* broker - what the parts of warren-broker share: the loop, the link to warrend.
 *
 * Each part (previews; egress) has a context of its own that lives in here and handlers for the
 * messages that are its; main.c has the table. */
#pragma once
#include "base/loop.h"
#include "broker/certfiles.h"
#include "broker/client.h"
#include "broker/forward.h"
#include "broker/link.h"
#include "broker/out.h"
#include "broker/tls.h"
#include "broker/trust.h"

struct broker {
    struct loop *loop;
    struct link *link;
    struct preview preview;
    struct forwards forwards;
    struct tls *tls; /* NULL: none */
    struct certfiles files;
    struct out *out;
    struct trust *trust;
};
