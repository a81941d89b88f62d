#include "wire/bucket.h"

#include <string.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

static bool made_of(const char *text, const char *of, size_t min)
{
    size_t n = strspn(text, of);
    return n >= min && text[n] == '\0';
}

bool bucket_host_valid(const char *host)
{
    return made_of(host, LETTERS DIGITS ".-", 1) && host[0] != '-' && host[0] != '.' &&
           strlen(host) < BUCKET_HOST_SIZE;
}

bool bucket_name_valid(const char *name)
{
    return made_of(name, LETTERS DIGITS "._-", 3) && name[0] != '-' && name[0] != '.' &&
           strlen(name) < BUCKET_NAME_SIZE;
}

/* Names with a slash after each, but for the last; none of them "", "." or "..". */
bool bucket_prefix_valid(const char *prefix)
{
    if (strlen(prefix) >= BUCKET_PREFIX_SIZE || !made_of(prefix, LETTERS DIGITS "._/=+@-", 0))
        return false;
    for (const char *p = prefix; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 0 || (n <= 2 && strspn(p, ".") >= n))
            return false;
        p += n;
        if (*p && !*++p)
            return false;
    }
    return true;
}

bool bucket_region_valid(const char *region)
{
    return made_of(region, LETTERS DIGITS "-", 1) && strlen(region) < BUCKET_REGION_SIZE;
}

bool bucket_key_valid(const char *key)
{
    return made_of(key, LETTERS DIGITS "._/=+@-", 1);
}

static bool ends(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

bool bucket_config_valid(const struct bucket_config *c)
{
    return c->version == BUCKET_VERSION && c->port != 0 && ends(c->host, sizeof(c->host)) &&
           ends(c->bucket, sizeof(c->bucket)) && ends(c->prefix, sizeof(c->prefix)) &&
           ends(c->region, sizeof(c->region)) && ends(c->access_key, sizeof(c->access_key)) &&
           ends(c->secret, sizeof(c->secret)) && ends(c->opened, sizeof(c->opened)) &&
           bucket_host_valid(c->host) && bucket_name_valid(c->bucket) &&
           bucket_prefix_valid(c->prefix) && bucket_region_valid(c->region) &&
           bucket_key_valid(c->access_key) && bucket_key_valid(c->secret);
}
