/* Why something is refused, for a client that can read it. */
#include <stdio.h>
#include <sys/socket.h>

#include "broker/egress_private.h"

static const char *limit(enum policy_why why)
{
    switch (why) {
    case POLICY_BY_CONNECTIONS: return "connections at once";
    case POLICY_BY_PACE: return "connections in a second";
    case POLICY_BY_BYTES: return "bytes";
    case POLICY_BY_RULE:
    case POLICY_BY_DEFAULT:
    case POLICY_BY_PLACE:
    case POLICY_BY_MISMATCH:
    case POLICY_BY_HIDDEN: break;
    }
    return NULL;
}

/* What no rule says. */
static const char *reason(enum policy_why why)
{
    switch (why) {
    case POLICY_BY_DEFAULT: return ": no rule allows it (`warren net set` changes the rules)";
    case POLICY_BY_PLACE:
        return ": a private or reserved address, which only the operator can open (egress-open)";
    case POLICY_BY_MISMATCH: return ": the request names another host than was resolved";
    case POLICY_BY_HIDDEN: return ": the name in its TLS may be another than can be read";
    case POLICY_BY_RULE:
    case POLICY_BY_CONNECTIONS:
    case POLICY_BY_PACE:
    case POLICY_BY_BYTES: break;
    }
    return "";
}

/* Names and rules are made of letters that need no escape. */
static int write_body(const struct egress_record *rec, char *out, size_t size)
{
    char address[ADDRESS_TEXT_SIZE], to[HOST_SIZE + ADDRESS_TEXT_SIZE + 4];
    const char *at = rec->to.bits ? address_text(&rec->to, address) : "";
    (void)snprintf(to, sizeof(to), "%s%s%s%s", rec->name, rec->name[0] && *at ? " (" : "", at,
                   rec->name[0] && *at ? ")" : "");
    const char *beyond = limit(rec->why);
    if (beyond)
        return snprintf(out, size,
                        "{\"error\":{\"code\":\"network_limit\",\"message\":\"this sandbox has "
                        "reached its network's limit of %s\"}}\n",
                        beyond);
    return snprintf(out, size,
                    "{\"error\":{\"code\":\"network_denied\",\"message\":\"the network of this "
                    "sandbox does not reach %s port %u%s%s%s\"}}\n",
                    to, rec->port, rec->rule[0] ? " (rule '" : reason(rec->why), rec->rule,
                    rec->rule[0] ? "')" : "");
}

void refusal_say(int fd, const struct egress_record *rec)
{
    char body[1024], head[256];
    int n = write_body(rec, body, sizeof(body));
    int h = snprintf(head, sizeof(head),
                     "HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
                     "Content-Length: %d\r\nConnection: close\r\n\r\n",
                     limit(rec->why) ? "429 Too Many Requests" : "403 Forbidden", n);
    /* A fresh socket has room for it. */
    if (send(fd, head, (size_t)h, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE) == h)
        (void)send(fd, body, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
}
