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

#define BROKER_MSG_MAX 8192 /* no message of ours is larger */
#define BROKER_TOKEN_SIZE 160
#define BROKER_DATA_SIZE 4097 /* what a token carries, as JSON */
#define BROKER_HOST_SIZE 256
#define BROKER_BINDING_SIZE 64
#define BROKER_PROGRAM_SIZE 128
#define BROKER_WHO_MAX 12 /* sockets in one question */
#define BROKER_FORWARD_FDS 3

enum broker_type {
    /* warrend to broker */
    BROKER_CLIENT = 1, /* an fd: a connection whose first head waits in it, unread */
    BROKER_ANSWER,     /* to an ASK; with BROKER_OK and a port an fd */
    BROKER_NET,        /* an fd: a part of what makes a sandbox's network */
    BROKER_NET_END,    /* a sandbox has none any more */
    BROKER_NAME,       /* a name of a client's own leads to a port, or no longer */
    BROKER_LIMITS,     /* how much a sandbox's network may carry */
    BROKER_WHO_ANSWER, /* to a WHO */
    BROKER_FORWARD,    /* BROKER_FORWARD_FDS: a client's WebSocket, the port that its bytes are
                        * for, and a lease to close when it ends */
    BROKER_CERT, /* an fd: a file in memory with a certificate and its key; none: it is gone */
    /* broker to warrend */
    BROKER_ASK,    /* may this be, and a connection to it */
    BROKER_PASS,   /* an fd: a connection with requests for warrend itself */
    BROKER_TOUCH,  /* somebody is at work in a sandbox: it is not idle */
    BROKER_HELLO,  /* a new broker, which knows of no sandbox yet */
    BROKER_RECORD, /* what a sandbox reached, or could not */
    BROKER_TALLY,  /* bytes that it moved, or secrets it used, since the last of these */
    BROKER_WHO,    /* which programs of a sandbox have these sockets open? */
};

struct broker_client {
    uint32_t type;
};

struct broker_name {
    uint32_t type;
    uint32_t port; /* 0: it leads nowhere any more */
    char sandbox[ID_SIZE];
    char name[BROKER_HOST_SIZE]; /* lower case */
};

/* What a client brought to prove who it is; "": nothing. */
struct broker_proof {
    char token[BROKER_TOKEN_SIZE]; /* a preview's, by header, query or cookie; or E2B's */
    char key[BROKER_TOKEN_SIZE];   /* what may be a key of Warren's */
};

struct broker_ask {
    uint32_t type;
    uint32_t port;
    uint64_t number; /* comes back in the answer */
    uint32_t look;   /* yes: may it, and nothing more; no connection is wanted */
    char sandbox[ID_SIZE];
    struct broker_proof proof;
    struct sockaddr_storage peer; /* who wrong ones count against */
};

enum broker_verdict {
    BROKER_OK,
    BROKER_NO_SANDBOX, /* there is none of that id */
    BROKER_ASLEEP,     /* it is there and does not run */
    BROKER_CLOSED,     /* nothing listens on that port */
    BROKER_GONE,       /* it has ended */
    BROKER_FORBIDDEN,  /* it wants a token, and this one is not right */
    BROKER_LIMITED,    /* likewise, and there were too many of them */
    BROKER_FAILED,     /* for a reason of ours */
};

enum broker_flag {
    BROKER_E2B = 1, /* its clients know errors in E2B's shape */
};

struct broker_answer {
    uint32_t type;
    uint32_t verdict; /* enum broker_verdict */
    uint64_t number;
    uint32_t flags;   /* enum broker_flag */
    int64_t life_s;   /* LOOK: how long the token will do */
    int64_t ended_ms; /* GONE: when */
    char cause[16];   /* GONE, ASLEEP: why */
    char
        host[BROKER_HOST_SIZE]; /* what the server inside is told as Host; "": as the client said */
    char data[BROKER_DATA_SIZE]; /* what its token says of the client; "": nothing */
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
    BROKER_NET_RULES, /* a file in memory: as net/policy.h writes them; perhaps the line of a proxy */
    BROKER_NET_TCP,   /* sockets of its namespace, and the link that leads to them */
    BROKER_NET_UDP,
    BROKER_NET_REST,
    BROKER_NET_LINK,
    BROKER_NET_DIAG, /* asks the kernel whose a connection is */
    BROKER_NET_RAW_V4,
    BROKER_NET_RAW_V6,
    BROKER_NET_BINDINGS, /* a file in memory: as net/binding.h packs them; an empty one: none */
    BROKER_NET_CA,       /* a file in memory, PEM: certificate and key of the sandbox's own CA */
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

enum broker_cert_what {
    BROKER_CERT_DEFAULT, /* for whoever names no other */
    BROKER_CERT_BELOW,   /* an authority for names below the domain */
    BROKER_CERT_NAMED,   /* for the names that it has */
};

struct broker_cert {
    uint32_t type;
    uint32_t what;                /* enum broker_cert_what */
    char label[BROKER_HOST_SIZE]; /* NAMED: by which it is told of again */
};

struct broker_forward {
    uint32_t type;
    char sandbox[ID_SIZE];
};

struct broker_hello {
    uint32_t type;
};

/* One attempt: once, or again and again while it lasts; what it carried is the sum so far. */
struct broker_record {
    uint32_t type;
    uint32_t question, allowed, udp; /* yes or no; udp: 2 is ICMP */
    uint32_t open;                   /* it is not over: another record of it will come */
    uint32_t why;                    /* enum policy_why */
    uint32_t port;
    uint32_t failure; /* errno of what was allowed and could not be reached; 0 */
    int64_t wall_ms;
    uint64_t
        flow; /* the same in all records of one connection, and in no others; 0: the only one */
    uint64_t sent_bytes, received_bytes;
    char sandbox[ID_SIZE];
    char address[48];
    char program[BROKER_PROGRAM_SIZE]; /* inside: untrusted text; "": not known */
    char binding[BROKER_BINDING_SIZE]; /* which put a credential in; "": none */
    char name[BROKER_HOST_SIZE];
    char rule[400];
};

/* 0: without limit. */
struct broker_limits {
    uint32_t type;
    uint32_t connections, connections_per_s;
    uint64_t bytes_per_s, bytes;
    uint64_t spent_bytes; /* of `bytes`, so far as warrend knows */
    char sandbox[ID_SIZE];
};

/* What is to be added to the sums. */
struct broker_tally {
    uint32_t type;
    uint32_t preview; /* yes or no: somebody reached in */
    uint32_t connections, denied;
    uint64_t sent_bytes, received_bytes;
    char sandbox[ID_SIZE];
    char host[BROKER_HOST_SIZE]; /* "": others, or a preview */
    /* Not "": no bytes, but a secret that so many requests (`connections`) carried to the host of its binding. */
    char binding[BROKER_BINDING_SIZE];
    uint32_t port; /* with binding */
};

struct broker_who {
    uint32_t type;
    uint32_t n;
    uint64_t number; /* comes back in the answer */
    char sandbox[ID_SIZE];
    uint32_t inodes[BROKER_WHO_MAX];
};

struct broker_who_answer {
    uint32_t type;
    uint32_t n; /* 0: it is not known */
    uint64_t number;
    char sandbox[ID_SIZE];
    char programs[BROKER_WHO_MAX][BROKER_PROGRAM_SIZE]; /* "": not known */
};
