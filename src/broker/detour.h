/* detour - the way of one dial through proxies: which they are, and the talk with each in turn.
 *
 * The operator's comes first, then the sandbox's own; the last is asked for the place itself. A
 * sandbox's proxy is a place like others: it must be one that is open to sandboxes. */
#pragma once
#include "broker/resolver.h"
#include "net/hop.h"

#define DETOUR_LEGS_MAX 2

struct dial;
struct network;

struct detour {
    struct dial *dial;                  /* whose way it is */
    struct proxy legs[DETOUR_LEGS_MAX]; /* copies: the sandbox's may change meanwhile */
    bool own[DETOUR_LEGS_MAX];          /* the sandbox's own */
    struct address at[DETOUR_LEGS_MAX]; /* where they are, once it is known */
    size_t n_legs, leg;                 /* leg: with whom we talk */
    struct address to;
    uint16_t port;
    char name[HOST_SIZE]; /* "" unless it is the address's */
    struct lookup lookup;
    size_t looking; /* for which leg */
    bool second;    /* it asks for IPv6 */
    struct hop hop;
    bool talking;
};

/* 1: *ret_detour is the way; 0: straight; -ENOMEM. */
int detour_new(struct network *n, const struct address *to, uint16_t port, const char *name,
               struct detour **ret_detour);
void detour_free(struct detour *d); /* NULL is fine */

/* Must what goes there take one? */
bool detour_needed(struct network *n, const struct address *to);

/* Where a leg is, by what is known without asking: false, it has to be looked up. */
bool detour_find(struct detour *d, size_t leg);
/* May a sandbox's proxy be there? */
bool detour_allowed(struct network *n, const struct detour *d, size_t leg);
/* Begin the talk with the present leg: it is asked for the next, or for the place. */
int detour_talk(struct detour *d);
