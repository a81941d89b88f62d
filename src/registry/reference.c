#include "registry/reference.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define TEXT_SHOWN 96 /* of a wrong name, in a message */
#define PORT_DIGITS 5

static bool lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool word(char c)
{
    return lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool port_valid(const char *p, size_t n)
{
    unsigned long v = 0;
    if (n < 1 || n > PORT_DIGITS)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        v = v * 10 + (unsigned long)(p[i] - '0');
    }
    return v >= 1 && v <= 65535;
}

/* Labels of letters, digits and '-', neither first nor last a '-'. */
static bool name_part_valid(const char *p, size_t n)
{
    size_t label = 0;
    if (n == 0 || n > 253)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '.') {
            if (label == 0 || p[i - 1] == '-')
                return false;
            label = 0;
            continue;
        }
        if (!(word(p[i]) && p[i] != '_') && !(p[i] == '-' && label > 0))
            return false;
        if (++label > 63)
            return false;
    }
    return label > 0 && p[n - 1] != '-';
}

static bool ipv6_valid(const char *p, size_t n)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr addr;
    if (n == 0 || n >= sizeof(text))
        return false;
    memcpy(text, p, n);
    text[n] = '\0';
    return inet_pton(AF_INET6, text, &addr) == 1;
}

bool host_valid(const char *p, size_t n)
{
    if (n == 0 || n > REFERENCE_HOST_MAX || memchr(p, '\0', n))
        return false;
    if (p[0] == '[') {
        const char *close = memchr(p, ']', n);
        if (!close || !ipv6_valid(p + 1, (size_t)(close - p) - 1))
            return false;
        size_t rest = n - (size_t)(close - p) - 1;
        return rest == 0 || (close[1] == ':' && port_valid(close + 2, rest - 1));
    }
    const char *colon = memchr(p, ':', n);
    size_t name = colon ? (size_t)(colon - p) : n;
    return name_part_valid(p, name) && (!colon || port_valid(colon + 1, n - name - 1));
}

bool host_is_loopback(const char *host)
{
    struct in_addr v4;
    char text[REFERENCE_HOST_MAX + 1];
    size_t n = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");
    if (n >= sizeof(text))
        return false;
    memcpy(text, host, n);
    text[n] = '\0';
    if (text[0] == '[') {
        struct in6_addr v6;
        return inet_pton(AF_INET6, text + 1, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
    }
    if (strcasecmp(text, "localhost") == 0)
        return true;
    return inet_pton(AF_INET, text, &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127;
}

/* Components of lower-case letters and digits with '.', '_', '__' or any number of '-' between. */
static bool repo_valid(const char *p, size_t n)
{
    if (n == 0 || n > REFERENCE_REPO_MAX)
        return false;
    for (size_t i = 0; i < n;) {
        if (!lower_or_digit(p[i]))
            return false;
        while (i < n && lower_or_digit(p[i]))
            i++;
        if (i == n)
            return true;
        if (p[i] == '-')
            while (i < n && p[i] == '-')
                i++;
        else if (p[i] == '_')
            i += i + 1 < n && p[i + 1] == '_' ? 2 : 1;
        else if (p[i] == '.' || p[i] == '/')
            i++;
        else
            return false;
    }
    return false; /* it ended with a separator */
}

static bool tag_valid(const char *p, size_t n)
{
    if (n == 0 || n > REFERENCE_TAG_MAX || !word(p[0]))
        return false;
    for (size_t i = 1; i < n; i++)
        if (!word(p[i]) && p[i] != '.' && p[i] != '-')
            return false;
    return true;
}

static bool looks_like_host(const char *p, size_t n)
{
    if (n == 9 && memcmp(p, "localhost", 9) == 0)
        return true;
    for (size_t i = 0; i < n; i++)
        if (p[i] == '.' || p[i] == ':' || (p[i] >= 'A' && p[i] <= 'Z'))
            return true;
    return false;
}

static void put(char *out, const char *p, size_t n)
{
    memcpy(out, p, n);
    out[n] = '\0';
}

/* The one registry whose name is not its address, and where a plain name means "library/name":
 * everyone writes it that way. */
static bool host_is_hub(const char *host)
{
    return strcasecmp(host, "docker.io") == 0 || strcasecmp(host, "index.docker.io") == 0;
}

static int bad(const char *p, size_t n, const char *what, struct err *err)
{
    return err_fail(err, FAIL_INVALID_REFERENCE, "'%.*s' is not an image's name: %s",
                    (int)(n < TEXT_SHOWN ? n : TEXT_SHOWN), p, what);
}

static int take_host(const char **p, size_t *n, const char *default_host, struct reference *ref,
                     struct err *err)
{
    const char *slash = memchr(*p, '/', *n);
    size_t len = slash ? (size_t)(slash - *p) : 0;
    if (slash && looks_like_host(*p, len)) {
        if (!host_valid(*p, len))
            return bad(*p, *n, "what stands before the first '/' is no host[:port]", err);
        put(ref->host, *p, len);
        *p += len + 1;
        *n -= len + 1;
        return 0;
    }
    if (!default_host || !*default_host)
        return err_fail(err, FAIL_INVALID_REFERENCE,
                        "'%.*s' does not say which registry it is at: write HOST/NAME, or set "
                        "the daemon's default-registry option",
                        (int)(*n < TEXT_SHOWN ? *n : TEXT_SHOWN), *p);
    if (!host_valid(default_host, strlen(default_host)))
        return bad(*p, *n, "the daemon's default-registry is no host[:port]", err);
    put(ref->host, default_host, strlen(default_host));
    return 0;
}

int reference_parse(const char *p, size_t n, const char *default_host, struct reference *ret_ref,
                    struct err *err)
{
    struct reference ref = { 0 };
    const char *whole = p;
    size_t whole_n = n;

    if (n == 0 || n >= REFERENCE_TEXT_MAX || memchr(p, '\0', n))
        return err_fail(err, FAIL_INVALID_REFERENCE, "an image's name must have 1 to %d characters",
                        REFERENCE_TEXT_MAX - 1);
    const char *at = memchr(p, '@', n);
    if (at) {
        size_t len = n - (size_t)(at - p) - 1;
        if (!sha_valid(at + 1, len))
            return bad(whole, whole_n, "after '@' must stand sha256: and 64 digits of 0-9a-f", err);
        put(ref.digest, at + 1, len);
        n = (size_t)(at - p);
    }
    int r = take_host(&p, &n, default_host, &ref, err);
    if (r < 0)
        return r;
    const char *colon = memchr(p, ':', n);
    if (colon) {
        size_t len = n - (size_t)(colon - p) - 1;
        if (!tag_valid(colon + 1, len))
            return bad(whole, whole_n,
                       "a tag has 1 to 128 of letters, digits, '_', '.' and '-', the first not "
                       "one of the last two",
                       err);
        put(ref.tag, colon + 1, len);
        n = (size_t)(colon - p);
    } else if (!ref.digest[0]) {
        put(ref.tag, "latest", 6);
    }
    if (!repo_valid(p, n))
        return bad(whole, whole_n,
                   "a repository is lower-case words with '.', '_', '-' or '/' between them", err);
    if (host_is_hub(ref.host) && !memchr(p, '/', n) && n + 8 <= REFERENCE_REPO_MAX) {
        memcpy(ref.repo, "library/", 8);
        put(ref.repo + 8, p, n);
    } else {
        put(ref.repo, p, n);
    }
    *ret_ref = ref;
    return 0;
}

const char *reference_api_host(const struct reference *ref)
{
    return host_is_hub(ref->host) ? "registry-1.docker.io" : ref->host;
}

const char *reference_what(const struct reference *ref)
{
    return ref->digest[0] ? ref->digest : ref->tag;
}

const char *reference_text(const struct reference *ref, char out[REFERENCE_TEXT_MAX])
{
    (void)snprintf(out, REFERENCE_TEXT_MAX, "%s/%s%s%s%s%s", ref->host, ref->repo,
                   ref->tag[0] ? ":" : "", ref->tag, ref->digest[0] ? "@" : "", ref->digest);
    return out;
}
