/* binding - a secret that is added to requests on their way out, and to which requests.
 *
 * A binding names a secret (or a literal), the host, methods and paths it is for, and how a request
 * carries it. What decides is the path in one spelling: one that two servers could read differently
 * (dots as segments in any form, bytes that do not belong there) fits nothing. Three forms of one
 * thing: members by name, as JSON has them; a line of text, as the daemon keeps and people type it;
 * and, for the broker alone, lines with their secrets' values. Pure; knows no sockets. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

#define BINDINGS_MAX 64
#define BINDING_METHODS_MAX 8
#define BINDING_METHOD_SIZE 20
#define BINDING_TEXT_MAX (16 * 1024)          /* one line */
#define BINDINGS_TEXT_MAX (1024 * 1024)       /* all of a sandbox's */
#define BINDINGS_PACKED_MAX (8 * 1024 * 1024) /* and with values of 64 KiB in base64 */
#define BINDING_ZONE ".warren"                /* what internal names end in */

enum binding_as {
    BINDING_BEARER, /* Authorization: Bearer VALUE */
    BINDING_HEADER, /* HEADER: FORMAT, the value in the place of its {} */
    BINDING_QUERY,  /* ?QUERY=VALUE */
    BINDING_BASIC,  /* Authorization: Basic of USER:VALUE */
    BINDING_SIGV4,  /* signed for AWS; the value is the secret access key */
    BINDING_GIT,    /* as BASIC, for git's smart HTTP requests and no others */
};

/* How much of an answer comes back, from all to nothing. */
enum binding_answer {
    BINDING_FULL,   /* all, with secrets hidden */
    BINDING_JSON,   /* the status, and a JSON body written anew */
    BINDING_STATUS, /* the status alone */
    BINDING_NONE,   /* 204 in any case */
};

struct binding {
    /* What it is; all texts are the binding's own. */
    char *secret;  /* name of the secret; NULL: a literal */
    char *literal; /* NULL: a secret */
    char *host;    /* canonical pattern, see net/host.h */
    uint16_t port;
    char methods[BINDING_METHODS_MAX][BINDING_METHOD_SIZE];
    size_t n_methods; /* 0: every method */
    char *path;       /* canonical pattern: "*" is a part of a segment, at the end all the rest */
    enum binding_as as;
    char *header, *format;               /* HEADER; the format is there always */
    char *query;                         /* QUERY */
    char *user;                          /* BASIC, GIT */
    char *access_key, *region, *service; /* SIGV4 */
    char *name;                          /* http://NAME.warren; NULL: none */
    bool transparent;                    /* https://HOST is answered too */
    enum binding_answer answer;
    unsigned given; /* members that were set, while reading */
    /* What goes out in its place, where it is known (the broker): a secret's value, or a copy of
     * the literal. NULL: there is none, and what fits must not go out without it. */
    char *value;
    size_t n_value;
};

struct bindings {
    struct binding *items;
    size_t n;
};

#define BINDING_INIT        \
    {                       \
        .transparent = true \
    }
#define BINDINGS_INIT \
    {                 \
        NULL, 0       \
    }

void binding_done(struct binding *b); /* its value is wiped */
void bindings_done(struct bindings *bs);

/* ---- reading; each -EINVAL, invalid_binding: what is wrong with it and what to write ---- */

/* One member: "secret", "value", "host", "port", "methods" (with commas), "path", "as", "header",
 * "format", "query", "user", "access_key", "region", "service", "name", "transparent" ("yes", "no"),
 * "answer". */
int binding_set(struct binding *b, const char *member, const char *p, size_t n, struct err *err);
/* After the last member: what is missing is set, what does not belong together is refused. */
int binding_finish(struct binding *b, struct err *err);
/* Takes b's contents on success; -E2BIG: there are too many. */
int bindings_add(struct bindings *bs, struct binding *b, struct err *err);
/* One line: member=value words, values with blanks or quotes in "double quotes" (\" and \\ inside);
 * the first word may be SECRET@HOST[:PORT][/PATH]. */
int binding_parse(const char *p, size_t n, struct binding *ret_b, struct err *err);
/* Lines. On failure *ret_bs is untouched. */
int bindings_parse(const char *p, size_t n, struct bindings *ret_bs, struct err *err);

/* ---- writing ---- */

int binding_text(const struct binding *b,
                 struct buf *out); /* as binding_parse reads it, no newline */
int bindings_text(const struct bindings *bs, struct buf *out);
const char *binding_as_name(enum binding_as as);
const char *binding_answer_name(enum binding_answer answer);

/* ---- to the broker ----
 * For each binding its line, and after it a line of its own: "=" and the value in base64, or "-"
 * where there is none, or it is a literal. Whoever packs or unpacks wipes the bytes. */
int bindings_pack(const struct bindings *bs, struct buf *out);
int bindings_unpack(const char *p, size_t n, struct bindings *ret_bs, struct err *err);
/* Can a request carry this value as the binding says? A line break cannot go into a header. */
bool binding_carries(const struct binding *b, const char *value, size_t n);

/* ---- matching ---- */

/* The path of a request's target in one spelling, without its query; *ret_query is where that
 * begins in target, after the "?" (n where there is none). -EBADMSG: it may be read as another
 * path, or is none. */
int binding_path(const char *target, size_t n, struct buf *out, size_t *ret_query);

struct binding_request {
    const char *host; /* canonical; NULL: it came to `name` */
    uint16_t port;    /* with host */
    const char *name; /* the label before .warren, lower case */
    const char *method;
    size_t n_method;
    const char *target;
    size_t n_target;
};
/* All that fit, in order; a request carries what each of them says, and of two that would set the
 * same thing the first. How many; -EBADMSG: no binding can speak for such a target. */
int bindings_match(const struct bindings *bs, const struct binding_request *q,
                   const struct binding *ret_fits[BINDINGS_MAX]);
/* Is any binding for https://host:port? Then its TLS is ours to answer. */
bool bindings_host(const struct bindings *bs, const char *host, uint16_t port);
/* Might one be for this host at some port? Then the name is resolved. */
bool bindings_resolve(const struct bindings *bs, const char *host);
/* The first binding with this internal name: it says the host and port behind it. NULL: none. */
const struct binding *bindings_named(const struct bindings *bs, const char *name);
