/* dns - the messages of DNS that a resolver between two others needs, read and written.
 *
 * Towards a sandbox: questions in, answers out. Towards a real resolver: the other way round. Both
 * sides may lie, so nothing is taken from a message but what it is asked for: from an answer, the
 * addresses at the end of the chain that starts at our own question. Pure functions over bytes;
 * sockets, time and policy are somebody else's. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/address.h"
#include "net/host.h"

#define DNS_UDP_MAX 1232     /* what passes every path unfragmented; also what we offer */
#define DNS_UDP_PLAIN 512    /* without EDNS */
#define DNS_TCP_MAX 65535    /*  */
#define DNS_QUESTION_MAX 259 /* a name of 255 bytes, type and class */
#define DNS_ADDRESSES_MAX 32 /* kept of one answer */

enum dns_type { DNS_A = 1, DNS_AAAA = 28 };
enum dns_rcode {
    DNS_NOERROR = 0,
    DNS_FORMERR = 1,
    DNS_SERVFAIL = 2,
    DNS_NXDOMAIN = 3,
    DNS_NOTIMP = 4,
    DNS_REFUSED = 5,
};
enum dns_reason { DNS_NO_REASON = 0, DNS_PROHIBITED = 18 }; /* RFC 8914's codes */

struct dns_question {
    uint16_t id;
    uint16_t type;        /* any; only enum dns_type can be answered with addresses */
    uint16_t udp_max;     /* the largest datagram that its sender takes */
    bool edns;            /* may be told a reason */
    bool recursion;       /* asked for, to be repeated */
    char name[HOST_SIZE]; /* canonical; empty: no host can have that name */
    uint8_t
        raw[DNS_QUESTION_MAX]; /* the question as it came, to be repeated; its case may matter */
    size_t n_raw;
};

/* 0. -EBADMSG: not worth an answer. -EINVAL and -EOPNOTSUPP: answer with FORMERR or NOTIMP; then id and
 * recursion are set and raw is empty. */
int dns_read_question(const void *p, size_t n, struct dns_question *ret_q);

struct dns_reply {
    enum dns_rcode rcode;
    enum dns_reason reason;
    uint32_t ttl;                    /* of every address */
    const struct address *addresses; /* those of another family than the question's are left out */
    size_t n_addresses;
};

/* Append an answer of at most max bytes; what does not fit is cut, and says so. */
int dns_write_reply(const struct dns_question *q, const struct dns_reply *reply, size_t max,
                    struct buf *out);

/* Append a question to a resolver. */
int dns_write_question(uint16_t id, const char *name, enum dns_type type, struct buf *out);

struct dns_answer {
    unsigned rcode;
    bool truncated; /* ask again over TCP */
    uint32_t ttl;   /* the smallest on the way; 0 without addresses */
    struct address addresses[DNS_ADDRESSES_MAX];
    size_t n_addresses;
};

/* -EBADMSG: not an answer to this question, or malformed; wait for another. */
int dns_read_answer(const void *p, size_t n, uint16_t id, const char *name, enum dns_type type,
                    struct dns_answer *ret_answer);
