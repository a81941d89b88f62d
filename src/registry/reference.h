/* reference - the name of an image at a registry: [host[:port]/]repo[:tag][@digest].
 *
 * The grammar is the one every container tool has: the part before the first slash is a host if it
 * has a '.', a ':' or an upper-case letter, or is "localhost"; a repository is lower case. Parses
 * text into fixed places, knows nothing of networks. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "registry/sha.h"

#define REFERENCE_HOST_MAX 262 /* a host name, ':' and a port */
#define REFERENCE_REPO_MAX 255
#define REFERENCE_TAG_MAX 128
#define REFERENCE_TEXT_MAX \
    (REFERENCE_HOST_MAX + REFERENCE_REPO_MAX + REFERENCE_TAG_MAX + SHA_SIZE + 4)

struct reference {
    char host[REFERENCE_HOST_MAX + 1]; /* with the port, if one was given */
    char repo[REFERENCE_REPO_MAX + 1];
    char tag[REFERENCE_TAG_MAX + 1]; /* "latest" where neither tag nor digest was given */
    char digest[SHA_SIZE];           /* empty: none */
};

/* `default_host` (NULL or empty: none) stands in where the name has no host. Every failure is
 * invalid_reference. */
int reference_parse(const char *p, size_t n, const char *default_host, struct reference *ret_ref,
                    struct err *err);
/* Where the API of that host answers: the host itself, but for one that is known under another name. */
const char *reference_api_host(const struct reference *ref);
/* What stands behind "manifests/" in a request: the digest if there is one, else the tag. */
const char *reference_what(const struct reference *ref);
/* host/repo[:tag][@digest]. Returns out. */
const char *reference_text(const struct reference *ref, char out[REFERENCE_TEXT_MAX]);

/* The name of a host as written: "localhost", 127.x.x.x, [::1], with or without a port. */
bool host_is_loopback(const char *host);
/* host[:port], a name of letters, digits, '-' and '.', or an IPv6 address in brackets. */
bool host_valid(const char *p, size_t n);
