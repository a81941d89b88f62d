#include "registry/challenge.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

struct cursor {
    const char *p, *end;
};

static bool token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static void skip(struct cursor *c, const char *set)
{
    while (c->p < c->end && *c->p && strchr(set, *c->p))
        c->p++;
}

static size_t take_token(struct cursor *c, const char **ret_token)
{
    *ret_token = c->p;
    while (c->p < c->end && token_char(*c->p))
        c->p++;
    return (size_t)(c->p - *ret_token);
}

/* A token or a quoted text into out; false if it does not fit or is broken. */
static bool take_value(struct cursor *c, char out[CHALLENGE_TEXT_MAX])
{
    size_t n = 0;
    if (c->p == c->end || *c->p != '"') {
        const char *token;
        n = take_token(c, &token);
        if (n == 0 || n >= CHALLENGE_TEXT_MAX)
            return false;
        memcpy(out, token, n);
        out[n] = '\0';
        return true;
    }
    for (c->p++; c->p < c->end && *c->p != '"'; c->p++) {
        if (*c->p == '\\' && c->p + 1 < c->end)
            c->p++;
        if ((unsigned char)*c->p < ' ' || *c->p == 0x7f || n + 1 >= CHALLENGE_TEXT_MAX)
            return false;
        out[n++] = *c->p;
    }
    if (c->p == c->end)
        return false;
    c->p++;
    out[n] = '\0';
    return true;
}

static bool is(const char *p, size_t n, const char *name)
{
    return strlen(name) == n && strncasecmp(p, name, n) == 0;
}

/* "name=value, name=value": ends before a token that has no '=', which is the next scheme. */
static bool take_params(struct cursor *c, struct challenge *ch)
{
    for (;;) {
        char other[CHALLENGE_TEXT_MAX];
        const char *name;
        skip(c, " \t,");
        struct cursor before = *c;
        size_t n = take_token(c, &name);
        skip(c, " \t");
        if (n == 0 || c->p == c->end || *c->p != '=') {
            *c = before;
            return true;
        }
        c->p++;
        skip(c, " \t");
        char *to = is(name, n, "realm")     ? ch->realm
                   : is(name, n, "service") ? ch->service
                   : is(name, n, "scope")   ? ch->scope
                                            : other;
        if (!take_value(c, to))
            return false;
    }
}

void challenge_parse(const char *p, size_t n, struct challenge *ret_challenge)
{
    struct cursor c = { p, p + n };
    memset(ret_challenge, 0, sizeof(*ret_challenge));
    while (c.p < c.end) {
        struct challenge ch = { 0 };
        const char *scheme;
        skip(&c, " \t,");
        size_t len = take_token(&c, &scheme);
        if (len == 0)
            return;
        if (is(scheme, len, "Bearer"))
            ch.scheme = CHALLENGE_BEARER;
        else if (is(scheme, len, "Basic"))
            ch.scheme = CHALLENGE_BASIC;
        if (!take_params(&c, &ch))
            return;
        if (ch.scheme == CHALLENGE_BEARER && !ch.realm[0])
            ch.scheme = CHALLENGE_NONE;
        if (ch.scheme > ret_challenge->scheme)
            *ret_challenge = ch;
    }
}
