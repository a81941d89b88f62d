#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "registry/exchange.h"

static void cleanup_url(CURLU **u)
{
    curl_url_cleanup(*u);
}
#define _cleanup_url_ _cleanup_(cleanup_url)

static void cleanup_text(char **text)
{
    curl_free(*text);
}
#define _cleanup_text_ _cleanup_(cleanup_text)

static int bad(struct err *err, const char *what)
{
    return err_fail_as(err, EPROTO, FAIL_REGISTRY_FAILED, "the registry gave an address %s", what);
}

int url_origin(const char *url, bool *ret_tls, char ret_host[EXCHANGE_HOST_MAX], struct err *err)
{
    _cleanup_url_ CURLU *u = curl_url();
    _cleanup_text_ char *scheme = NULL, *user = NULL, *host = NULL, *port = NULL;
    if (!u)
        return err_set(err, ENOMEM, "cannot allocate an address");
    if (curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK ||
        curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK)
        return bad(err, "that is none");
    bool tls = strcmp(scheme, "https") == 0;
    if (!tls && strcmp(scheme, "http") != 0)
        return bad(err, "that is neither https nor http");
    if (curl_url_get(u, CURLUPART_USER, &user, 0) == CURLUE_OK)
        return bad(err, "with a user's name in it");
    if (curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK)
        return bad(err, "with a port that is none");
    bool usual = strcmp(port, tls ? "443" : "80") == 0;
    int n =
        snprintf(ret_host, EXCHANGE_HOST_MAX, "%s%s%s", host, usual ? "" : ":", usual ? "" : port);
    if (n < 0 || n >= EXCHANGE_HOST_MAX)
        return bad(err, "with a host that is too long");
    *ret_tls = tls;
    return 0;
}

bool url_same_origin(const char *a, const char *b)
{
    char host_a[EXCHANGE_HOST_MAX], host_b[EXCHANGE_HOST_MAX];
    bool tls_a = false, tls_b = false;
    return url_origin(a, &tls_a, host_a, NULL) >= 0 && url_origin(b, &tls_b, host_b, NULL) >= 0 &&
           tls_a == tls_b && strcasecmp(host_a, host_b) == 0;
}

static int put(CURLU *u, char ret_url[EXCHANGE_URL_MAX], struct err *err)
{
    _cleanup_text_ char *text = NULL;
    if (curl_url_get(u, CURLUPART_URL, &text, 0) != CURLUE_OK)
        return bad(err, "that is none");
    size_t n = strlen(text);
    if (n >= EXCHANGE_URL_MAX)
        return bad(err, "that is too long");
    memcpy(ret_url, text, n + 1);
    return 0;
}

int url_resolve(const char *base, const char *location, char ret_url[EXCHANGE_URL_MAX],
                struct err *err)
{
    _cleanup_url_ CURLU *u = curl_url();
    if (!u)
        return err_set(err, ENOMEM, "cannot allocate an address");
    if (!*location)
        return bad(err, "that is empty");
    if (curl_url_set(u, CURLUPART_URL, base, 0) != CURLUE_OK ||
        curl_url_set(u, CURLUPART_URL, location, 0) != CURLUE_OK)
        return bad(err, "that is none");
    return put(u, ret_url, err);
}

int url_add_query(char url[EXCHANGE_URL_MAX], const char *name, const char *value, struct err *err)
{
    _cleanup_url_ CURLU *u = curl_url();
    _cleanup_free_ char *pair = NULL;
    if (!u || asprintf(&pair, "%s=%s", name, value) < 0)
        return err_set(err, ENOMEM, "cannot allocate an address");
    if (curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK ||
        curl_url_set(u, CURLUPART_QUERY, pair, CURLU_APPENDQUERY | CURLU_URLENCODE) != CURLUE_OK)
        return bad(err, "that is none");
    return put(u, url, err);
}
