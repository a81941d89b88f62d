/* proxy - a proxy that stands between us and the world, as an operator or a caller writes it.
 *
 * http://, https:// (TLS to the proxy itself), socks5:// and socks5h:// (which is asked by name),
 * perhaps a user and a password, a host or an address, and always a port. Pure functions. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "net/address.h"
#include "net/host.h"

#define PROXY_WORD_SIZE 256 /* 255 bytes is what SOCKS5 has room for */
#define PROXY_TEXT_MAX 2048

enum proxy_kind { PROXY_HTTP, PROXY_HTTPS, PROXY_SOCKS5 };

struct proxy {
    enum proxy_kind kind;
    bool by_name;           /* it is told names where they are known, and asks for them itself */
    char host[HOST_SIZE];   /* "": it is an address */
    struct address address; /* bits 0: it is a name */
    uint16_t port;
    char user[PROXY_WORD_SIZE]; /* "": it wants to know nobody */
    char password[PROXY_WORD_SIZE];
};

/* -EINVAL, invalid_proxy. What is wrong is said without a word of the password. */
int proxy_parse(const char *p, size_t n, struct proxy *ret_up, struct err *err);
bool proxy_equal(const struct proxy *a, const struct proxy *b);
/* The text of a network may end in a line "proxy URL". Where the URL is, *ret_n bytes of it, or NULL; what
 * comes before that line are *ret_rules bytes, with or without one. */
const char *proxy_line(const char *p, size_t n, size_t *ret_rules, size_t *ret_n);
/* As it may be shown: without the password. */
int proxy_show(const struct proxy *up, struct buf *out);
