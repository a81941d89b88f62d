/* challenge - what a registry's WWW-Authenticate header asks for.
 *
 * Of several challenges the first Bearer one is taken, else the first Basic one; a scheme that is
 * not known is passed over. Bytes in, a struct out; knows nothing of HTTP. */
#pragma once
#include <stddef.h>

#include "base/cleanup.h"

#define CHALLENGE_TEXT_MAX 2048

enum challenge_scheme { CHALLENGE_NONE, CHALLENGE_BASIC, CHALLENGE_BEARER };

struct challenge {
    enum challenge_scheme scheme;
    char realm[CHALLENGE_TEXT_MAX];
    char service[CHALLENGE_TEXT_MAX];
    char scope[CHALLENGE_TEXT_MAX]; /* empty: not said */
};

/* CHALLENGE_NONE where there is nothing that we can do; a parameter that is too long or holds a
 * control character makes the challenge one of these. */
void challenge_parse(const char *p, size_t n, struct challenge *ret_challenge);
