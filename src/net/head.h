/* head - the head of an HTTP/1.1 message: its first line and its fields, read strictly.
 *
 * A request that two readers could understand differently is refused, not guessed at: bare line
 * feeds, folded lines, a length twice or beside a coding, a second Host. An answer comes from a
 * server inside and is always written anew, so there a line may end in a bare line feed; how its
 * body ends must be as clear. Nothing is copied: what is found points into the caller's bytes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/body.h"

#define HEAD_MAX (32 * 1024) /* what browsers send with many cookies, and as much again */
#define HEAD_FIELDS_MAX 128

struct text {
    const char *p;
    size_t n;
};

struct head_field {
    struct text name, value; /* the value without the blanks around it */
};

struct head {
    unsigned minor;             /* HTTP/1.minor */
    struct text method, target; /* of a request */
    unsigned status;            /* of an answer */
    struct text reason;
    size_t size;      /* bytes of it, the empty line included */
    struct text host; /* of a request; n is 0 when there is none */
    bool keep_alive;  /* the connection may be used again after this message */
    bool upgrade;     /* "Connection: upgrade" and an Upgrade field */
    bool expect;      /* a request's "Expect: 100-continue" */
    enum body_kind body;
    uint64_t length; /* BODY_LENGTH */
    size_t nfields;
    struct head_field fields[HEAD_FIELDS_MAX];
};

/* How many of these bytes are a head, the empty line included; 0: it has not ended yet. `seen` of
 * them were looked at before. */
size_t head_end(const char *p, size_t n, size_t seen);

/* `n` is what head_end gave. -EBADMSG: not a head that can be trusted; -EMSGSIZE: too many fields. */
int head_request(const char *p, size_t n, struct head *ret_head);
/* to_head: it answers a HEAD request, and has no body whatever it says. */
int head_answer(const char *p, size_t n, bool to_head, struct head *ret_head);

bool text_is(struct text t, const char *word); /* whatever the case */
bool text_starts(struct text t, const char *word);
/* The same to gateways to applications, which make one of all that is no letter and no digit. */
bool text_reads_as(struct text t, const char *word);
/* The first field of that name; NULL: none. */
const struct head_field *head_find(const struct head *h, const char *name);
/* Append a text; a field with its line's end. */
int text_put(struct buf *out, struct text t);
int head_put_field(struct buf *out, struct text name, struct text value);
/* A list with commas holds this word, whatever the case. */
bool text_lists(struct text list, const char *word);
/* Fields that are for the next hop alone, and those that this head's Connection names. */
bool head_is_hop(const struct head *h, struct text name);
