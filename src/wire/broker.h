/* broker - the messages between warrend and warren-broker.
 *
 * One SOCK_SEQPACKET pair, made before either drops its rights and kept by the broker's launcher
 * through the broker's deaths: what was sent meanwhile waits for the next one. Each datagram is a
 * fixed struct that begins with its type; strings are NUL-terminated within their arrays. Both
 * sides check size, type and each member. An answer whose question was a former broker's has a
 * number that the new one does not know, and is dropped with its descriptor. */
#pragma once
#include <stdint.h>
#include <sys/socket.h>

#include "base/id.h"

#define BROKER_MSG_MAX 2048 /* no message of ours is larger */
#define BROKER_TOKEN_SIZE 160
#define BROKER_HOST_SIZE 256

enum broker_type {
    /* warrend to broker */
    BROKER_CLIENT = 1, /* an fd: a connection whose first head waits in it, unread */
    BROKER_ANSWER,     /* to an ASK; with BROKER_OK and a port an fd */
    BROKER_NET,        /* an fd: a part of what makes a sandbox's network */
    BROKER_NET_END,    /* a sandbox has none any more */
    /* broker to warrend */
    BROKER_ASK,    /* may this be, and a connection to it */
    BROKER_PASS,   /* an fd: a connection with requests for warrend itself */
    BROKER_TOUCH,  /* somebody is at work in a sandbox: it is not idle */
    BROKER_HELLO,  /* a new broker, which knows of no sandbox yet */
    BROKER_RECORD, /* what a sandbox reached, or could not */
};

struct broker_client {
    uint32_t type;
};

struct broker_ask {
    uint32_t type;
    uint32_t port;
    uint64_t number; /* comes back in the answer */
    char sandbox[ID_SIZE];
    char token[BROKER_TOKEN_SIZE]; /* what the client brought; "": nothing */
};

enum broker_verdict {
    BROKER_OK,
    BROKER_NO_SANDBOX, /* there is none of that id, or it has ended */
    BROKER_ASLEEP,     /* it is there and does not run */
    BROKER_CLOSED,     /* nothing listens on that port */
    BROKER_FORBIDDEN,  /* it wants a token, and this one is not right */
    BROKER_FAILED,     /* for a reason of ours */
};

enum broker_flag {
    BROKER_E2B = 1, /* its clients know errors in E2B's shape */
};

struct broker_answer {
    uint32_t type;
    uint32_t verdict; /* enum broker_verdict */
    uint64_t number;
    uint32_t flags; /* enum broker_flag */
    char host
        [BROKER_HOST_SIZE]; /* what the server inside is told as Host; "": what the client said */
};

struct broker_pass {
    uint32_t type;
    uint32_t peer_len;
    struct sockaddr_storage peer; /* who it is for: wrong keys count against this address */
};

struct broker_touch {
    uint32_t type;
    char sandbox[ID_SIZE];
};

enum broker_net_part {
    BROKER_NET_RULES, /* a file in memory: as net/policy.h writes them */
    BROKER_NET_TCP,   /* sockets of its namespace, and the link that leads to them */
    BROKER_NET_UDP,
    BROKER_NET_LINK,
};

struct broker_net {
    uint32_t type;
    uint32_t part; /* enum broker_net_part */
    uint32_t cut;  /* RULES: they are for open connections too */
    char sandbox[ID_SIZE];
};

struct broker_net_end {
    uint32_t type;
    char sandbox[ID_SIZE];
};

struct broker_hello {
    uint32_t type;
};

struct broker_record {
    uint32_t type;
    uint32_t question, allowed, udp; /* yes or no */
    uint32_t why;                    /* enum policy_why */
    uint32_t port;
    uint32_t failure; /* errno of what was allowed and could not be reached; 0 */
    int64_t wall_ms;
    uint64_t sent_bytes, received_bytes;
    char sandbox[ID_SIZE];
    char address[48];
    char name[BROKER_HOST_SIZE];
    char rule[400];
};
